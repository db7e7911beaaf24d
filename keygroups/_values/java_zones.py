"""The time zones of java.sql's key types: the names and spans that mean the same everywhere.

Java reads zones from data of its own, as old as the JDK, and silently takes an unknown name for
GMT. The names here are in every release of the tz database from 2024a to 2026f, and in Java. In
the doubtful spans these releases differ from one another, from 1970 to 2036, compiled with and
without the database's `backzone` file: there Java's data may differ from this machine's.
"""

from __future__ import annotations

import datetime as dt
from functools import cache
from zoneinfo import ZoneInfo

from keygroups._checks import show
from keygroups.errors import InvalidValueError

_BY_REGION = {
    "": """
        CET CST6CDT Cuba EST5EDT Egypt Eire GB GB-Eire GMT GMT0 Greenwich Hongkong Iceland Iran
        Israel Jamaica Japan Kwajalein Libya MET MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland
        Portugal ROK Singapore Turkey UCT UTC Universal W-SU Zulu
    """,
    "Africa": """
        Abidjan Accra Addis_Ababa Algiers Asmara Asmera Bamako Bangui Banjul Bissau Blantyre
        Brazzaville Bujumbura Cairo Casablanca Ceuta Conakry Dakar Dar_es_Salaam Djibouti Douala
        El_Aaiun Freetown Gaborone Harare Johannesburg Juba Kampala Khartoum Kigali Kinshasa Lagos
        Libreville Lome Luanda Lubumbashi Lusaka Malabo Maputo Maseru Mbabane Mogadishu Monrovia
        Nairobi Ndjamena Niamey Nouakchott Ouagadougou Porto-Novo Sao_Tome Timbuktu Tripoli Tunis
        Windhoek
    """,
    "America": """
        Adak Anchorage Anguilla Antigua Araguaina Aruba Asuncion Atikokan Atka Bahia
        Bahia_Banderas Barbados Belem Belize Blanc-Sablon Boa_Vista Bogota Boise Buenos_Aires
        Cambridge_Bay Campo_Grande Cancun Caracas Catamarca Cayenne Cayman Chicago Chihuahua
        Ciudad_Juarez Coral_Harbour Cordoba Costa_Rica Creston Cuiaba Curacao Danmarkshavn Dawson
        Dawson_Creek Denver Detroit Dominica Edmonton Eirunepe El_Salvador Ensenada Fort_Nelson
        Fort_Wayne Fortaleza Glace_Bay Godthab Goose_Bay Grand_Turk Grenada Guadeloupe Guatemala
        Guayaquil Guyana Halifax Havana Hermosillo Indianapolis Inuvik Iqaluit Jamaica Jujuy
        Juneau Knox_IN Kralendijk La_Paz Lima Los_Angeles Louisville Lower_Princes Maceio Managua
        Manaus Marigot Martinique Matamoros Mazatlan Mendoza Menominee Merida Metlakatla
        Mexico_City Miquelon Moncton Monterrey Montevideo Montreal Montserrat Nassau New_York
        Nipigon Nome Noronha Nuuk Ojinaga Panama Pangnirtung Paramaribo Phoenix Port-au-Prince
        Port_of_Spain Porto_Acre Porto_Velho Puerto_Rico Punta_Arenas Rainy_River Rankin_Inlet
        Recife Regina Resolute Rio_Branco Rosario Santa_Isabel Santarem Santiago Santo_Domingo
        Sao_Paulo Scoresbysund Shiprock Sitka St_Barthelemy St_Johns St_Kitts St_Lucia St_Thomas
        St_Vincent Swift_Current Tegucigalpa Thule Thunder_Bay Tijuana Toronto Tortola Vancouver
        Virgin Whitehorse Winnipeg Yakutat Yellowknife
    """,
    "America/Argentina": """
        Buenos_Aires Catamarca ComodRivadavia Cordoba Jujuy La_Rioja Mendoza Rio_Gallegos Salta
        San_Juan San_Luis Tucuman Ushuaia
    """,
    "America/Indiana": """
        Indianapolis Knox Marengo Petersburg Tell_City Vevay Vincennes Winamac
    """,
    "America/Kentucky": "Louisville Monticello",
    "America/North_Dakota": "Beulah Center New_Salem",
    "Antarctica": """
        Casey Davis DumontDUrville Macquarie Mawson McMurdo Palmer Rothera South_Pole Syowa Troll
        Vostok
    """,
    "Arctic": "Longyearbyen",
    "Asia": """
        Aden Almaty Amman Anadyr Aqtau Aqtobe Ashgabat Ashkhabad Atyrau Baghdad Bahrain Baku
        Bangkok Barnaul Beirut Bishkek Brunei Calcutta Chita Choibalsan Chongqing Chungking
        Colombo Dacca Damascus Dhaka Dili Dubai Dushanbe Famagusta Gaza Harbin Hebron Ho_Chi_Minh
        Hong_Kong Hovd Irkutsk Istanbul Jakarta Jayapura Jerusalem Kabul Kamchatka Karachi Kashgar
        Kathmandu Katmandu Khandyga Kolkata Krasnoyarsk Kuala_Lumpur Kuching Kuwait Macao Macau
        Magadan Makassar Manila Muscat Nicosia Novokuznetsk Novosibirsk Omsk Oral Phnom_Penh
        Pontianak Pyongyang Qatar Qostanay Qyzylorda Rangoon Riyadh Saigon Sakhalin Samarkand
        Seoul Shanghai Singapore Srednekolymsk Taipei Tashkent Tbilisi Tehran Tel_Aviv Thimbu
        Thimphu Tokyo Tomsk Ujung_Pandang Ulaanbaatar Ulan_Bator Urumqi Ust-Nera Vientiane
        Vladivostok Yakutsk Yangon Yekaterinburg Yerevan
    """,
    "Atlantic": """
        Azores Bermuda Canary Cape_Verde Faeroe Faroe Jan_Mayen Madeira Reykjavik South_Georgia
        St_Helena Stanley
    """,
    "Australia": """
        ACT Adelaide Brisbane Broken_Hill Canberra Currie Darwin Eucla Hobart LHI Lindeman
        Lord_Howe Melbourne NSW North Perth Queensland South Sydney Tasmania Victoria West
        Yancowinna
    """,
    "Brazil": "Acre DeNoronha East West",
    "Canada": "Atlantic Central Eastern Mountain Newfoundland Pacific Saskatchewan Yukon",
    "Chile": "Continental EasterIsland",
    "Etc": """
        GMT GMT+0 GMT+1 GMT+10 GMT+11 GMT+12 GMT+2 GMT+3 GMT+4 GMT+5 GMT+6 GMT+7 GMT+8 GMT+9 GMT-0
        GMT-1 GMT-10 GMT-11 GMT-12 GMT-13 GMT-14 GMT-2 GMT-3 GMT-4 GMT-5 GMT-6 GMT-7 GMT-8 GMT-9
        GMT0 Greenwich UCT UTC Universal Zulu
    """,
    "Europe": """
        Amsterdam Andorra Astrakhan Athens Belfast Belgrade Berlin Bratislava Brussels Bucharest
        Budapest Busingen Chisinau Copenhagen Dublin Gibraltar Guernsey Helsinki Isle_of_Man
        Istanbul Jersey Kaliningrad Kiev Kirov Kyiv Lisbon Ljubljana London Luxembourg Madrid
        Malta Mariehamn Minsk Monaco Moscow Nicosia Oslo Paris Podgorica Prague Riga Rome Samara
        San_Marino Sarajevo Saratov Simferopol Skopje Sofia Stockholm Tallinn Tirane Tiraspol
        Ulyanovsk Uzhgorod Vaduz Vatican Vienna Vilnius Volgograd Warsaw Zagreb Zaporozhye Zurich
    """,
    "Indian": """
        Antananarivo Chagos Christmas Cocos Comoro Kerguelen Mahe Maldives Mauritius Mayotte
        Reunion
    """,
    "Mexico": "BajaNorte BajaSur General",
    "Pacific": """
        Apia Auckland Bougainville Chatham Chuuk Easter Efate Enderbury Fakaofo Fiji Funafuti
        Galapagos Gambier Guadalcanal Guam Honolulu Johnston Kanton Kiritimati Kosrae Kwajalein
        Majuro Marquesas Midway Nauru Niue Norfolk Noumea Pago_Pago Palau Pitcairn Pohnpei Ponape
        Port_Moresby Rarotonga Saipan Samoa Tahiti Tarawa Tongatapu Truk Wake Wallis Yap
    """,
    "US": """
        Alaska Aleutian Arizona Central East-Indiana Eastern Hawaii Indiana-Starke Michigan
        Mountain Pacific Samoa
    """,
}
ZONE_NAMES = frozenset(
    f"{region}/{name}".removeprefix("/")
    for region, names in _BY_REGION.items()
    for name in names.split()
)
"""The names of zones that Java and the tz database agree on."""

# Names that do not mean the same in every JVM: the name to write instead, and the reason.
_LEGACY = {
    "WET": ("Europe/Lisbon", "has rules of its own in a JVM with data older than release 2024b"),
    "EET": ("Europe/Athens", "has rules of its own in a JVM with data older than release 2024b"),
    "EST": ("America/Panama", "is America/New_York in a JVM told to map names as Java 1.1 did"),
    "MST": ("America/Phoenix", "is America/Denver in a JVM told to map names as Java 1.1 did"),
    "HST": ("Pacific/Honolulu", "is a name that Java means to drop, and to take for GMT then"),
    "ROC": ("Asia/Taipei", "is GMT in Java, which does not know it"),
    "GMT+0": ("GMT", "is no name of a zone in Java"),
    "GMT-0": ("GMT", "is no name of a zone in Java"),
}

_CANADA = "2026-11-01/2037-01-01"
# Wall-clock spans by zones, the end excluded; a day by itself is that whole day.
_DOUBTFUL_BY_ZONES = {
    "Africa/Casablanca Africa/El_Aaiun": "2026-09-20/2037-01-01",
    "America/Asuncion": "2025-03-22/2037-01-01",
    "America/Bahia_Banderas America/Hermosillo America/Mazatlan Mexico/BajaSur": (
        "1970-01-01/1970-01-01T01"
    ),
    "America/Bogota": "1992-05-02/1992-05-04",
    "America/Cancun": "1981-12-23/1997-10-27",
    "America/Edmonton America/Inuvik America/Rainy_River America/Vancouver": _CANADA,
    "America/Winnipeg America/Yellowknife": _CANADA,
    "Canada/Central Canada/Mountain Canada/Pacific": _CANADA,
    "America/Ensenada America/Santa_Isabel America/Tijuana Mexico/BajaNorte": (
        "1970-04-26/1975-10-27"
    ),
    "America/Havana Cuba": "2026-11-01/2027-03-15",
    "America/Merida": "1981-12-23/1982-12-03",
    "Asia/Choibalsan": "1983-04-01/2008-04-01",
    "Asia/Manila": "1977-03-28/1978-09-22 1990-05-21/1990-07-30",
    "Asia/Tehran Iran": "1978-11-10/1979-05-28",
    "Atlantic/Azores": "1977-03-27/1993-06-18",
    "Atlantic/Madeira": "1977-03-27/1986-03-31",
    "Europe/Chisinau Europe/Tiraspol": """
        2022-03-27 2022-10-30 2023-03-26 2023-10-29 2024-03-31 2024-10-27 2025-03-30 2025-10-26
        2026-03-29 2026-10-25 2027-03-28 2027-10-31 2028-03-26 2028-10-29 2029-03-25 2029-10-28
        2030-03-31 2030-10-27 2031-03-30 2031-10-26 2032-03-28 2032-10-31 2033-03-27 2033-10-30
        2034-03-26 2034-10-29 2035-03-25 2035-10-28 2036-03-30 2036-10-26
    """,
    "Europe/Lisbon Portugal": "1978-04-02/1985-09-30",
}
_DOUBTFUL = {
    name: spans.split() for names, spans in _DOUBTFUL_BY_ZONES.items() for name in names.split()
}

# Release 2024a was the first with Kazakhstan at UTC+5 from 2024-03-01 on.
_WITNESS = ("Asia/Almaty", dt.datetime(2024, 6, 1), dt.timedelta(hours=5))


def time_zone(name: str) -> dt.tzinfo:
    """Return the rules of a zone by one of `ZONE_NAMES`, from this machine's data.

    Raises InvalidValueError for another name, and where the data are missing or older than
    release 2024a.
    """
    if name == "UTC":
        return dt.timezone.utc
    if name not in ZONE_NAMES:
        raise InvalidValueError(
            "zone must be an IANA time zone that Java knows by the same name, such as "
            f"'Europe/Berlin', got {show(name)}{_advice(name)}"
        )
    witness, moment, offset = _WITNESS
    if _load(witness).utcoffset(moment) != offset:
        raise InvalidValueError(
            f"zone {name!r} needs time zone data of release 2024a or later, which this machine "
            "does not have: update its tzdata"
        )
    return _load(name)


def _load(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise InvalidValueError(
            f"zone {name!r} is not in this machine's time zone data: install the package tzdata"
        ) from None


def _advice(name: str) -> str:
    """Return the end of a message that refuses a zone: the name to write instead, or ""."""
    if name in _LEGACY:
        instead, reason = _LEGACY[name]
        return f", which {reason}; write {instead!r} if that is meant"
    plain = name.removeprefix("posix/").removeprefix("right/").casefold()
    for known in ZONE_NAMES:
        if known.casefold() == plain:
            return f"; write {known!r}"
    return ""


@cache
def doubtful_spans(name: str) -> tuple[tuple[dt.datetime, dt.datetime], ...]:
    """Return the wall-clock spans, the end excluded, in which releases of a zone's data differ."""
    spans = []
    for text in _DOUBTFUL.get(name, ()):
        first, _, end = text.partition("/")
        start, day = dt.datetime.fromisoformat(first), dt.timedelta(days=1)
        spans.append((start, dt.datetime.fromisoformat(end) if end else start + day))
    return tuple(spans)
