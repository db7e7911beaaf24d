"""State of each type of value read as columns of Arrow against the same read as entries.

Run `python tests/benchmarks/bench_vs_entries.py [entries] [type ...] [form ...]`. For each type it
writes a savepoint in each form, reads both ways in turn, and prints how many entries a second of
CPU each way has, of the best of its rounds, and their ratio. It fails, with status 1, where
columns are slower than entries.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from support.bytes import savepoint_bytes as sb
from support.bytes.sst_bytes import VALUE, sst
from support.inside import serializers
from support.inside.serializers import (
    BigDecSerializer,
    PojoSerializer,
    RowDataSerializer,
    TtlSerializer,
)

from keygroups.logical_types import parse_logical_type
from keygroups.savepoint import Operator, read_savepoint
from keygroups.savepoint.values import Pojo, Row, TtlValue
from keygroups.state_keys import Serializer

ENTRIES, ROUNDS, DISTINCT = 100_000, 3, 97
KEY_GROUPS, PER_BLOCK = 128, 64
PER_RUN = 16  # RocksDB's block_restart_interval
PREFIX = 1  # bytes of the key group
LONG, INT, DOUBLE, BOOLEAN, TEXT = (
    serializers.LONG,
    serializers.INT,
    serializers.DOUBLE,
    serializers.BOOLEAN,
    serializers.STRING,
)


class State(NamedTuple):
    """A state: its kind, the serializer of its values, and the values by number.

    Those of a LIST are lists of such values, those of a MAP dicts from text to them.
    """

    kind: str
    serializer: Serializer
    value: Callable[[int], Any]

    def header(self) -> bytes:
        value = self.serializer.versioned_snapshot()
        if self.kind == "LIST":
            value = sb.list_of(value)
        elif self.kind == "MAP":
            value = sb.map_of(sb.simple("String"), value)
        return sb.keyed_header(sb.simple("String"), [sb.state("s", self.kind, value)])

    def framed(self, number: int) -> list[tuple[bytes, bytes]]:
        """Return the entries of a key: the end of their keys, that of a user key, and values."""
        value, encode = self.value(number), self.serializer.encode
        if self.kind == "LIST":
            return [(b"", b",".join(map(encode, value)))]
        if self.kind == "MAP":
            return [(TEXT.encode(key), b"\0" + encode(one)) for key, one in value.items()]
        return [(b"", encode(value))]

    def native(self, number: int) -> bytes:
        """Return the bytes of a value on the heap."""
        whole: Serializer = self.serializer
        if self.kind == "LIST":
            whole = serializers.ListSerializer(whole)
        elif self.kind == "MAP":
            whole = serializers.MapSerializer(TEXT, whole)
        return whole.encode(self.value(number))


POJO_NAMES = ("id", "name", "city", "score", "count", "active", "created", "note")
POJO = PojoSerializer(
    "a.Visit",
    POJO_NAMES,
    [LONG, TEXT, TEXT, DOUBLE, INT, BOOLEAN, LONG, TEXT],
)


def pojo(number: int) -> Pojo:
    fields = (number, f"user-{number}", "Zürich" if number % 50 == 0 else "Berlin", number / 7)
    more = (number % 1000, number % 2 == 0, 1_700_000_000_000 + number)
    note = None if number % 10 == 0 else f"note {number} of a visit"
    return Pojo("a.Visit", dict(zip(POJO_NAMES, (*fields, *more, note))))


def sql_row(*texts: str) -> RowDataSerializer:
    return RowDataSerializer([*map(parse_logical_type, texts)])


def price(number: int) -> Decimal:
    return Decimal(number) / 100


NESTED = PojoSerializer(
    "a.Order",
    ("visit", "tags", "amounts", "pair"),
    [
        POJO,
        serializers.ListSerializer(TEXT),
        serializers.MapSerializer(TEXT, LONG),
        serializers.TupleSerializer([INT, TEXT]),
    ],
)


def nested(number: int) -> Pojo:
    tags = [f"tag-{tag}" for tag in range(number % 4)]
    values = (pojo(number), tags, dict.fromkeys(tags, number), (number, f"pair-{number}"))
    return Pojo("a.Order", dict(zip(NESTED.names, values)))


DAY = datetime(2024, 1, 1, 12, tzinfo=timezone.utc)
STATES = {
    "LONG": State("VALUE", LONG, lambda number: number),
    "STRING": State("VALUE", TEXT, lambda number: f"value-{number}"),
    "POJO of 8": State("VALUE", POJO, pojo),
    "POJO nested": State("VALUE", NESTED, nested),
    "SQL_ROW": State(
        "VALUE",
        sql_row("BIGINT", "STRING", "DECIMAL(10, 2)"),
        lambda number: Row((number, f"a name of {number}", price(number))),
    ),
    "SQL_ROW nulls": State(
        "VALUE",
        sql_row("BIGINT", "STRING", "DECIMAL(30, 2)", "TIMESTAMP(6)", "DATE"),
        lambda number: Row(
            (number, f"n{number}" if number % 3 else None, price(number), None, date(2024, 1, 1))
        ),
    ),
    "SQL_ROW nested": State(
        "VALUE",
        sql_row("ROW<id BIGINT, name STRING>", "STRING"),
        lambda number: Row((Row((number, f"inner-{number}")), f"a text of {number}")),
    ),
    "TUPLE": State(
        "VALUE",
        serializers.TupleSerializer([TEXT, INT, DOUBLE]),
        lambda number: (f"tuple-{number}", number, number / 3),
    ),
    "ROW": State(
        "VALUE",
        serializers.RowSerializer([TEXT, INT, DOUBLE]),
        lambda number: Row((f"row-{number}", None if number % 5 == 0 else number, number / 3)),
    ),
    "TTL": State(
        "VALUE", TtlSerializer(TEXT), lambda number: TtlValue(1_700_000_000_000, f"value-{number}")
    ),
    "LIST of LONG": State("LIST", LONG, lambda number: [*range(number % 7 + 1)]),
    "LIST of STRING": State("LIST", TEXT, lambda number: ["element"] * (number % 7 + 1)),
    "MAP": State("MAP", LONG, lambda number: {f"city-{city}": number for city in range(10)}),
    "MAP of POJO": State(
        "MAP", POJO, lambda number: {f"city-{city}": pojo(number) for city in range(10)}
    ),
    "List": State(
        "VALUE", serializers.ListSerializer(TEXT), lambda number: ["element"] * (number % 7)
    ),
    "Map": State(
        "VALUE",
        serializers.MapSerializer(TEXT, LONG),
        lambda number: {f"key-{key}": number for key in range(number % 7)},
    ),
    "Set": State("VALUE", serializers.SetSerializer(LONG), lambda number: {*range(number % 7)}),
    "BIG_DEC": State("VALUE", BigDecSerializer(), price),
    "ENUM": State(
        "VALUE", serializers.EnumSerializer("a.E", ("NEW", "OLD")), lambda number: "NEW"
    ),
    "INSTANT": State("VALUE", serializers.InstantSerializer(), lambda number: DAY),
    "LOCAL_DATE": State("VALUE", serializers.LocalDateSerializer(), lambda number: DAY.date()),
    "BYTES": State("VALUE", serializers.BYTES, lambda number: b"\0" * (number % 30)),
}


def keys(count: int) -> list[list[bytes]]:
    """Return the bytes of keys by key group: not those that Flink computes, which nobody asks."""
    each = max(1, count // KEY_GROUPS)
    return [
        [serializers.write_string(f"user-{group * each + number}") for number in range(each)]
        for group in range(KEY_GROUPS)
    ]


def write(folder: Path, form: str, state: State, count: int) -> None:
    folder.mkdir()
    of_a_key = len(state.framed(0))
    FORMS[form](folder, state, keys(count // of_a_key))


def write_streams(
    folder: Path, state: State, groups: Sequence[bytes], make: Callable[..., bytes]
) -> None:
    header = state.header()
    offsets, place = [], len(header)
    for group in groups:
        offsets.append(place)
        place += len(group)
    (folder / "keyed").write_bytes(header + b"".join(groups))
    save(folder, make(0, offsets, sb.relative("keyed", place)))


def save(folder: Path, handle: bytes) -> None:
    sb.write(folder, [sb.operator([sb.subtask(managed_keyed=handle)], uid="s")])


def members(state: State, key_group: int, of_group: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the framed entries of a key group."""
    some = [state.framed(number) for number in range(DISTINCT)]
    return [
        (bytes([key_group]) + key + b"\0" + end, value)
        for index, key in enumerate(of_group)
        for end, value in some[index % DISTINCT]
    ]


def write_canonical(folder: Path, state: State, groups: list[list[bytes]]) -> None:
    written = [
        b"\0\0" + framed(members(state, number, of_group)) + b"\xff\xff"
        for number, of_group in enumerate(groups)
    ]
    write_streams(folder, state, written, sb.canonical)


def framed(entries: list[tuple[bytes, bytes]]) -> bytes:
    last = len(entries) - 1
    return b"".join(
        sb.i32(len(key))
        + bytes([key[0] | 0x80 * (index == last)])
        + key[1:]
        + sb.i32(len(value))
        + value
        for index, (key, value) in enumerate(entries)
    )


def write_native(folder: Path, state: State, groups: list[list[bytes]]) -> None:
    values = [state.native(number) for number in range(DISTINCT)]
    written = []
    for number, of_group in enumerate(groups):
        entries = (b"\0" + key + values[index % DISTINCT] for index, key in enumerate(of_group))
        head = sb.i32(number) + b"\0\0" + sb.i32(len(of_group))
        written.append(head + b"".join(entries))
    write_streams(folder, state, written, sb.native)


def write_rocksdb(folder: Path, state: State, groups: list[list[bytes]]) -> None:
    records = sorted(
        (key, 7, VALUE, value)
        for number, of_group in enumerate(groups)
        for key, value in members(state, number, of_group)
    )
    table = sst(records, "s", per_block=PER_BLOCK, per_run=PER_RUN)
    (folder / "1.sst").write_bytes(table)
    shared = [("1.sst", sb.relative("1.sst", len(table)))]
    save(folder, sb.rocksdb(0, KEY_GROUPS, sb.inline(state.header()), shared))


FORMS: dict[str, Callable[..., None]] = {
    "canonical": write_canonical,
    "rocksdb": write_rocksdb,
    "native": write_native,
}


def as_entries(operator: Operator) -> int:
    return sum(1 for _ in operator.entries())


def as_columns(operator: Operator) -> int:
    return sum(batch.num_rows for batch in operator.to_arrow_batch_reader("s"))


def rates(folder: Path) -> list[float]:
    """Return entries a second of CPU, one by one and as columns."""
    best = [float("inf")] * 2
    counts = set()
    for _ in range(ROUNDS):
        for number, side in enumerate((as_entries, as_columns)):
            (operator,) = read_savepoint(folder).operators
            start = time.process_time()
            counts.add(side(operator))
            best[number] = min(best[number], time.process_time() - start)
    [count] = counts
    return [count / seconds for seconds in best]


def main(arguments: Sequence[str]) -> int:
    count = next((int(one) for one in arguments if one.isdecimal()), ENTRIES)
    names = [name for name in STATES if name in arguments] or [*STATES]
    forms = [form for form in FORMS if form in arguments] or [*FORMS]
    slower = []
    print(f"{'entries a second':30} {'entries':>12} {'columns':>12} {'ratio':>7}")
    with TemporaryDirectory() as root:
        for name in names:
            for form in forms:
                folder = Path(root, f"{name}-{form}")
                write(folder, form, STATES[name], count)
                entries, columns = rates(folder)
                label, ratio = f"{name}, {form}", columns / entries
                print(f"{label:30} {entries:12,.0f} {columns:12,.0f} {ratio:7.2f}", flush=True)
                if ratio < 1:
                    slower.append(label)
    if slower:
        print(f"columns are slower than entries: {', '.join(slower)}")
    return bool(slower)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
