"""Classes that Kryo writes: supertypes and final ones of Java's, and those a user describes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from keygroups import types
from keygroups._checks import check_class, check_str, show
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.types import KeyType

SUPERTYPES = frozenset(
    [
        *("java.io.Serializable", "java.util.Calendar", "java.util.RandomAccess"),
        *(
            f"java.lang.{name}"
            for name in (
                *("AbstractStringBuilder", "Appendable", "CharSequence", "Cloneable"),
                *("Comparable", "Iterable", "Number", "Object"),
                *("constant.Constable", "constant.ConstantDesc", "invoke.TypeDescriptor"),
                *("invoke.TypeDescriptor$OfField", "reflect.AnnotatedElement"),
                *("reflect.GenericDeclaration", "reflect.Type"),
            )
        ),
        *(
            f"java.time.{name}"
            for name in (
                *("ZoneId", "chrono.ChronoLocalDate", "chrono.ChronoLocalDateTime"),
                *("chrono.ChronoPeriod", "chrono.ChronoZonedDateTime", "temporal.Temporal"),
                *("temporal.TemporalAccessor", "temporal.TemporalAdjuster"),
                "temporal.TemporalAmount",
            )
        ),
        *(
            f"java.util.{name}"
            for name in (
                *("AbstractCollection", "AbstractList", "AbstractMap", "AbstractQueue"),
                *("AbstractSequentialList", "AbstractSet", "Collection", "Deque", "List"),
                *(
                    "Map",
                    "Map$Entry",
                    "NavigableMap",
                    "NavigableSet",
                    "Queue",
                    "SequencedCollection",
                ),
                *("SequencedMap", "SequencedSet", "Set", "SortedMap", "SortedSet", "TimeZone"),
                "concurrent.ConcurrentMap",
                *(
                    f"ImmutableCollections$AbstractImmutable{kind}"
                    for kind in ("Collection", "List", "Map", "Set")
                ),
            )
        ),
        *("org.apache.flink.api.java.tuple.Tuple", "org.apache.flink.types.Either"),
    ]
)
"""Classes and interfaces that are not readable themselves, but above some that are."""
FINAL = frozenset(
    [
        *("java.net.URI", "java.net.URL", "org.apache.flink.types.Row", "[Ljava.lang.String;"),
        *(f"[{code}" for code in "ZBCSIJFD"),
        *(
            java_class
            for name in (
                *("Integer", "Long", "Short", "Byte", "Character", "Float", "Double", "Boolean"),
            )
            for java_class in (f"java.lang.{name}", f"[Ljava.lang.{name};")
        ),
        *(f"java.lang.{name}" for name in ("Class", "String", "StringBuffer", "StringBuilder")),
        *(
            f"java.time.{name}"
            for name in (
                *("Duration", "Instant", "LocalDate", "LocalDateTime", "LocalTime", "MonthDay"),
                *("OffsetDateTime", "OffsetTime", "Period", "Year", "YearMonth", "ZoneOffset"),
                *("ZoneRegion", "ZonedDateTime"),
            )
        ),
        *(
            f"java.util.{name}"
            for name in (
                *("Currency", "Locale", "Optional", "UUID", "regex.Pattern"),
                *(
                    f"ImmutableCollections${kind}"
                    for kind in ("List12", "ListN", "Map1", "MapN", "Set12", "SetN")
                ),
            )
        ),
    ]
)
"""The readable classes without subclasses; in a field of such a class Kryo writes no class."""
PRIMITIVES = {
    "boolean": "java.lang.Boolean",
    "byte": "java.lang.Byte",
    "char": "java.lang.Character",
    "double": "java.lang.Double",
    "float": "java.lang.Float",
    "int": "java.lang.Integer",
    "long": "java.lang.Long",
    "short": "java.lang.Short",
}
"""The primitive types, with the classes of the same values."""
KEY_TYPES: dict[str, KeyType] = {
    "java.lang.Boolean": types.BOOLEAN,
    "java.lang.Byte": types.BYTE,
    "java.lang.Character": types.CHAR,
    "java.lang.Double": types.DOUBLE,
    "java.lang.Float": types.FLOAT,
    "java.lang.Integer": types.INT,
    "java.lang.Long": types.LONG,
    "java.lang.Short": types.SHORT,
    "java.lang.String": types.STRING,
    "java.time.Instant": types.INSTANT,
    "java.time.LocalDate": types.LOCAL_DATE,
    "java.time.LocalDateTime": types.LOCAL_DATE_TIME,
    "java.time.LocalTime": types.LOCAL_TIME,
    "java.util.UUID": types.UUID,
}
"""The key types of final classes, by their names."""

_OF_KEY_TYPES = {
    **{key_type: name for name, key_type in KEY_TYPES.items()},
    types.BIG_DEC: "java.math.BigDecimal",
    types.BIG_INT: "java.math.BigInteger",
}
_TOKEN = re.compile(r"[<>,]|[^<>,\s]+")
_MOST_NESTED = 8  # levels of type arguments


class DeclaredClass(NamedTuple):
    """The class that a field is declared to be of, with its type arguments."""

    name: str
    arguments: tuple[DeclaredClass, ...] = ()

    def names(self) -> Iterator[str]:
        """Yield the names of the class and of its arguments."""
        yield self.name
        for argument in self.arguments:
            yield from argument.names()


@dataclass(frozen=True, init=False, repr=False)
class KryoFields:
    """A class of the job, whose objects Kryo writes one field after the other.

    For `serializers` of `read_savepoint`, under the full name of the class; an object is then a
    `Pojo`. Each field has its name and its type, in the order in which Kryo writes them: that of
    their names, with those of superclasses among them, without static and transient ones. They
    are given by name, or as a mapping where a name is none of Python's.

    A type is the class of the field as the job declares it: "int", "java.lang.Integer",
    "java.util.List<shop.Line>", or a key type: BOOLEAN, BYTE, CHAR, DOUBLE, FLOAT, INT, LONG and
    SHORT are Java's primitive types, STRING is String, BIG_DEC BigDecimal, LIST(STRING)
    List<String>. Of an interface or a superclass "java.lang.Object" says as much. A record's
    fields go without type arguments, which Kryo does not look at there.

    A new value is a `Pojo` of the class with these fields, each object of it another one. A list,
    a set or a map is written where its type says which it is: java.util.ArrayList, LinkedList,
    HashSet, HashMap or LinkedHashMap, also of a field that the job declares as an interface. No
    key is written: Flink may have other bytes for it.

    A class of the job that is a type has to be one of `serializers` too. `is_final` says whether
    this one can have no subclass, as a record: then Kryo does not write it in a field.

    Raises InvalidValueError or InvalidTypeError for what is no type, no name or no bool.

    Kryo: FieldSerializer, ReflectField, RecordSerializer.

    >>> from keygroups.types import BIG_DEC, INT, STRING
    >>> KryoFields(amount=BIG_DEC, qty=INT, sku=STRING)
    KryoFields({'amount': 'java.math.BigDecimal', 'qty': 'int', 'sku': 'java.lang.String'})
    """

    fields: tuple[tuple[str, str], ...]
    is_final: bool

    def __init__(
        self,
        fields: Mapping[str, str | KeyType] | None = None,
        /,
        *,
        is_final: bool = False,
        **by_name: str | KeyType,
    ) -> None:
        if fields is not None and not isinstance(fields, Mapping):
            raise InvalidTypeError(f"fields must be a mapping, got {show(fields)}")
        checked: dict[str, str] = {}
        for name, declared in chain((fields or {}).items(), by_name.items()):
            if check_str("name of a field", name) in checked:
                raise InvalidValueError(f"fields must be there once, got {show(name)} twice")
            checked[name] = _type_text(f"type of field {show(name)}", declared)
        object.__setattr__(self, "fields", tuple(checked.items()))
        object.__setattr__(self, "is_final", check_class("is_final", is_final, bool, "a bool"))

    def __repr__(self) -> str:
        final = ", is_final=True" if self.is_final else ""
        return f"KryoFields({dict(self.fields)!r}{final})"

    def declared(self) -> Iterator[tuple[str, DeclaredClass]]:
        """Yield the name of each field, and its class."""
        for name, text in self.fields:
            yield name, _parsed(text, text)


@dataclass(frozen=True, init=False, repr=False)
class KryoEnum:
    """The constants of an enum of the job, in their order, by whose numbers Kryo writes them.

    For `serializers` of `read_savepoint`, under the full name of the enum; a value is then the
    name of its constant. Raises InvalidValueError or InvalidTypeError for what is no name, or
    there twice.

    Kryo: DefaultSerializers.EnumSerializer.

    >>> KryoEnum("WEB", "APP")
    KryoEnum('WEB', 'APP')
    """

    constants: tuple[str, ...]
    is_final = True

    def __init__(self, *constants: str) -> None:
        names = tuple(check_str("constant", name) for name in constants)
        if len({*names}) < len(names):
            raise InvalidValueError(f"constants must be there once, got {show(names)}")
        object.__setattr__(self, "constants", names)

    def __repr__(self) -> str:
        return f"KryoEnum({', '.join(map(repr, self.constants))})"


KryoClass = KryoFields | KryoEnum


def _type_text(name: str, declared: object) -> str:
    """Return the declared type of a field as Java writes it."""
    if isinstance(declared, KeyType):
        return _of_key_type(name, declared, is_argument=False)
    text = check_str(name, declared)
    _parsed(name, text)
    return text


def _of_key_type(name: str, key_type: KeyType, is_argument: bool) -> str:
    java_class = _OF_KEY_TYPES.get(key_type)
    if java_class is not None:
        primitives = {} if is_argument else {boxed: name for name, boxed in PRIMITIVES.items()}
        return primitives.get(java_class, java_class)
    collections = {types.LIST: "List", types.SET: "Set", types.MAP: "Map"}
    collection = collections.get(type(key_type))
    if collection is None:
        raise InvalidValueError(
            f"{name} must be a class of Java, or a key type that is one, got {key_type!r}"
        )
    arguments = [_of_key_type(name, part, is_argument=True) for part in key_type.parts]
    return f"java.util.{collection}<{', '.join(arguments)}>"


def _parsed(name: str, text: str) -> DeclaredClass:
    """Return the DeclaredClass of a text, or raise InvalidValueError with `name`."""
    tokens = [token[0] for token in _TOKEN.finditer(text)]
    declared, end = _parse(tokens, 0, 0)
    if declared is None or end != len(tokens) or "".join(tokens) != "".join(text.split()):
        raise InvalidValueError(
            f"{name} must be such as 'java.util.List<java.lang.String>', got {show(text)}"
        )
    return declared


def _parse(tokens: list[str], pos: int, depth: int) -> tuple[DeclaredClass | None, int]:
    if depth > _MOST_NESTED or pos >= len(tokens) or tokens[pos] in "<>,":
        return None, pos
    name, pos = tokens[pos], pos + 1
    arguments: list[DeclaredClass] = []
    if pos < len(tokens) and tokens[pos] == "<":
        while tokens[pos] != ">":
            argument, pos = _parse(tokens, pos + 1, depth + 1)
            if argument is None or pos >= len(tokens) or tokens[pos] not in ",>":
                return None, pos
            arguments.append(argument)
        pos += 1
    return DeclaredClass(name, tuple(arguments)), pos
