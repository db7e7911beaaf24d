"""Flink's verdict about two serializers: whether one restores the state that another wrote.

Flink: TypeSerializerSnapshot.resolveSchemaCompatibility, of the class of each snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from keygroups._serializers.base import (
    Composite,
    Serializer,
    Simple,
    UnknownSerializer,
    UnreadableError,
    exact_type,
)
from keygroups._serializers.collections import GenericArraySerializer
from keygroups._serializers.compounds import (
    EnumSerializer,
    NullableSerializer,
    PyFlinkSerializer,
    RowSerializer,
    TupleSerializer,
)
from keygroups._serializers.jvm.avro import AvroSerializer
from keygroups._serializers.jvm.avro_compatibility import schemas_are_equal, unread
from keygroups._serializers.jvm.kryo import KryoSerializer
from keygroups._serializers.jvm.pojos import Member, PojoSerializer
from keygroups._serializers.sql.rows import (
    ArrayDataSerializer,
    BinaryRowDataSerializer,
    DecimalDataSerializer,
    MapDataSerializer,
    RowDataSerializer,
    TimestampDataSerializer,
    WithStreams,
)
from keygroups._serializers.streaming import unwrapped
from keygroups.errors import KeyGroupsError
from keygroups.logical_types import LogicalType

AS_IS = "as_is"
RECONFIGURED = "reconfigured"
AFTER_MIGRATION = "after_migration"
UNKNOWN = "unknown"
INCOMPATIBLE = "incompatible"
VERDICTS = (AS_IS, RECONFIGURED, AFTER_MIGRATION, UNKNOWN, INCOMPATIBLE)
"""From the best to the worst. Flink gives a reconfigured serializer the old one's numbers."""

_OF_EQUAL_TYPES = (  # The logical types are all that Flink compares of these.
    *(ArrayDataSerializer, BinaryRowDataSerializer, DecimalDataSerializer, MapDataSerializer),
    *(RowDataSerializer, TimestampDataSerializer),
)
# Starts of the names of classes that every job has: Java's, and one that stands for Avro's.
_OF_ALL = ("java.", "[", "org.apache.avro.generic.GenericData$Array")
# Names of the classes of Java's primitives; other names without a dot are in the default package.
_PRIMITIVES = {"boolean", "byte", "char", "double", "float", "int", "long", "short", "void"}
_MAPS = ("registered class", "class with a default serializer", "class with a default serializer")


class Finding(NamedTuple):
    """A verdict that is not "as_is", the place in the type, "" for all of it, and the reason."""

    verdict: str
    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason


def worst(findings: Collection[Finding]) -> str:
    """Return the verdict about the whole, "as_is" where nothing was found."""
    return worst_of([finding.verdict for finding in findings])


def worst_of(verdicts: Collection[str]) -> str:
    """Return the worst of verdicts, "as_is" of none."""
    return max(verdicts, key=VERDICTS.index, default=AS_IS)


def resolve(
    old: Serializer, new: Serializer, known: Collection[str] = (), place: str = ""
) -> Iterator[Finding]:
    """Yield a Finding for each difference of two serializers that Flink minds.

    `known` are names of classes that the new job has, `place` is where the serializers are.
    """
    old, new = map(_stored, (old, new))
    if own := next(filter(_is_of_the_job, (old, new)), None):
        same = "the same" if old == new else "not the same"
        name = own.java_class or exact_type(own)
        yield Finding(UNKNOWN, place, f"only the job's own {name} decides; both are {same}")
    elif type(old) is not type(new):
        yield Finding(INCOMPATIBLE, place, _change(old, new))
    elif isinstance(old, PojoSerializer) and isinstance(new, PojoSerializer):
        yield from _pojos(old, new, known, place)
    elif isinstance(old, KryoSerializer) and isinstance(new, KryoSerializer):
        yield from _kryo(old, new, known, place)
    elif isinstance(old, EnumSerializer) and isinstance(new, EnumSerializer):
        yield from _enums(old, new, place)
    elif isinstance(old, AvroSerializer) and isinstance(new, AvroSerializer):
        yield from _avro(old, new, known, place)
    elif isinstance(old, _OF_EQUAL_TYPES):
        yield from _sql(old, new, place)
    elif isinstance(old, Composite) and _has_known_outer(old):
        yield from _composites(old, new, known, place)
    elif not isinstance(old, Simple) and old != new:
        reason = f"{_change(old, new)}: what Flink says of these is not known here"
        yield Finding(UNKNOWN, place, reason)


def _stored(serializer: Serializer) -> Serializer:
    """Return the serializer whose snapshot is in the header."""
    serializer = unwrapped(serializer)
    if isinstance(serializer, PyFlinkSerializer):
        return RowSerializer(serializer.parts)
    return serializer


def _is_of_the_job(serializer: Serializer) -> bool:
    package = __name__.partition(".")[0]
    is_ours = type(serializer).__module__.startswith(f"{package}.")
    return isinstance(serializer, UnknownSerializer) or not is_ours


def _change(old: Serializer, new: Serializer) -> str:
    texts = exact_type(old), exact_type(new)
    return " -> ".join(texts) if texts[0] != texts[1] else f"another serializer of {texts[0]}"


def _at(place: str, more: str) -> str:
    return f"{place}, {more}" if place and more else place or more


def _moved(old: Serializer, new: Serializer, place: str) -> Iterator[Finding]:
    if old.java_class != new.java_class:
        reason = f"the class {old.java_class} is {new.java_class}"
        yield Finding(INCOMPATIBLE, place, reason)


def _missing(classes: Collection[str], known: Collection[str]) -> list[str]:
    """Return the classes that the new job may lack."""
    return [
        name
        for name in dict.fromkeys(classes)
        if name not in _PRIMITIVES and name not in known and not name.startswith(_OF_ALL)
    ]


def serializers_in(serializer: Serializer) -> Iterator[Serializer]:
    """Yield a serializer and all that are in it, those of a POJO's subclasses too."""
    yield serializer
    inner = serializer.parts
    if isinstance(serializer, PojoSerializer):
        members = (*serializer.registered, *serializer.met)
        inner = (*inner, *(member.serializer for member in members))
    for part in inner:
        yield from serializers_in(part)


def classes_of(serializer: Serializer) -> Iterator[str]:
    """Yield the names of the classes that a job has if it wrote a serializer's snapshot."""
    for part in serializers_in(serializer):
        if part.java_class:
            yield part.java_class
        if isinstance(part, PojoSerializer):
            yield from _names((*part.registered, *part.met))
        if isinstance(part, KryoSerializer):
            yield from (item.name for items in part.maps for item in items)


def of_classes(serializer: Serializer) -> Iterator[tuple[str, Serializer]]:
    """Yield the serializers in one that Flink makes of a class as it is in the job."""
    for part in serializers_in(serializer):
        if isinstance(part, (EnumSerializer, KryoSerializer, PojoSerializer)):
            yield part.java_class, part


def resolve_unregistered(
    old: Serializer, known: Mapping[str, Serializer | None]
) -> Iterator[Finding]:
    """Yield why Flink may not restore state of a serializer that the new job does not register.

    It makes the serializer all the same, and the hashmap backend reads the values. `known` are
    the classes that the job has, with a serializer of each where one is known.
    """
    if missing := _missing([*classes_of(old)], known):
        yield Finding(UNKNOWN, "", f"it takes a job that still has {', '.join(missing)}")
    for name, part in of_classes(old):
        new = known.get(name)
        for verdict, place, reason in () if new is None else resolve(part, new, known):
            if verdict == INCOMPATIBLE:
                is_read = not isinstance(part, EnumSerializer)
                more = ", with which the hashmap backend may not read it" if is_read else ""
                verdict = UNKNOWN if is_read else verdict
                yield Finding(verdict, _at(f"class {name}", place), reason + more)


# --- serializers with nested ones -----------------------------------------------------------


def _has_known_outer(serializer: Composite) -> bool:
    known = (GenericArraySerializer, NullableSerializer, RowSerializer, TupleSerializer)
    return isinstance(serializer, known) or type(serializer).outer is Composite.outer


def _composites(
    old: Serializer, new: Serializer, known: Collection[str], place: str
) -> Iterator[Finding]:
    """Yield a Finding for each nested serializer that differs, and for what the outer one says.

    Flink: CompositeTypeSerializerSnapshot.
    """
    yield from _moved(old, new, place)
    if len(old.parts) != len(new.parts):
        reason = f"{len(old.parts)} fields are {len(new.parts)}"
        yield Finding(INCOMPATIBLE, place, reason)
        return
    if _padding(old) != _padding(new):
        yield Finding(INCOMPATIBLE, place, "nulls are padded in one of both")
    if _has_row_kind(old) != _has_row_kind(new):
        yield Finding(AFTER_MIGRATION, place, "rows have their kind in one of both")
    several = len(old.parts) > 1
    for number, (part, other) in enumerate(zip(old.parts, new.parts)):
        inside = f"{old.name} {number}" if several else old.name
        yield from resolve(part, other, known, _at(place, inside))


def _padding(serializer: Serializer) -> bool:
    return isinstance(serializer, NullableSerializer) and serializer.padding > 0


def _has_row_kind(serializer: Serializer) -> bool:
    return isinstance(serializer, RowSerializer) and serializer.has_row_kind


def _pojos(
    old: PojoSerializer, new: PojoSerializer, known: Collection[str], place: str
) -> Iterator[Finding]:
    """Yield a Finding for each field and subclass that Flink minds.

    Flink: PojoSerializerSnapshot.
    """
    if old.java_class != new.java_class:
        yield from _moved(old, new, place)
        return
    parts, others = (dict(zip(pojo.names, pojo.parts)) for pojo in (old, new))
    for name, part in parts.items():
        if name not in others:
            yield from _removed(name, part, known, place)
    for name, part in others.items():
        if name not in parts:
            yield Finding(AFTER_MIGRATION, _at(place, f"field {name}"), "added")
        else:
            yield from resolve(parts[name], part, known, _at(place, f"field {name}"))
    yield from _subclasses(old, new, known, place)


def _removed(name: str, part: Serializer, known: Collection[str], place: str) -> Iterator[Finding]:
    """Yield the Finding for a field that is gone: Flink still makes the field's serializer."""
    where = _at(place, f"field {name}")
    missing = _missing([*classes_of(part)], known)
    if not missing:
        yield Finding(AFTER_MIGRATION, where, "removed")
        return
    reason = f"removed, which takes a job that still has {', '.join(missing)}"
    yield Finding(UNKNOWN, where, reason)


def _subclasses(
    old: PojoSerializer, new: PojoSerializer, known: Collection[str], place: str
) -> Iterator[Finding]:
    members = {member.name: member for member in (*new.registered, *new.met)}
    for member in (*old.registered, *old.met):
        if _missing([member.name], {*known, *members}):
            reason = "it takes a job that still has the class"
            yield Finding(UNKNOWN, _at(place, f"subclass {member.name}"), reason)
    registered = {member.name: member.serializer for member in new.registered}
    for member in old.registered:
        if member.name in registered:
            where = _at(place, f"subclass {member.name}")
            yield from resolve(member.serializer, registered[member.name], known, where)
    if not _is_prefix(_names(old.registered), _names(new.registered)):
        yield Finding(RECONFIGURED, place, "subclasses are registered in another order")
    if old.met:
        yield Finding(RECONFIGURED, place, "state has subclasses that nobody registered")


def _names(members: Sequence[Member]) -> list[str]:
    return [member.name for member in members]


def _is_prefix(names: Sequence[str], others: Sequence[str]) -> bool:
    return list(others[: len(names)]) == list(names)


# --- the others -----------------------------------------------------------------------------


def _enums(old: EnumSerializer, new: EnumSerializer, place: str) -> Iterator[Finding]:
    """Yield the Finding for constants; Flink keeps the old order and adds the new ones."""
    if old.java_class != new.java_class:
        yield from _moved(old, new, place)
    elif removed := [name for name in old.constants if name not in new.constants]:
        yield Finding(INCOMPATIBLE, place, f"constants are removed: {', '.join(removed)}")
    elif old.constants != new.constants:
        yield Finding(RECONFIGURED, place, "constants are added, or in another order")


def _kryo(
    old: KryoSerializer, new: KryoSerializer, known: Collection[str], place: str
) -> Iterator[Finding]:
    """Yield a Finding for registrations, and for the version of Kryo, which Flink leaves out.

    Flink: KryoSerializerSnapshot, LinkedOptionalMap.
    """
    yield from _moved(old, new, place)
    for title, items, others in zip(_MAPS, old.maps, new.maps):
        names, own = ([item.name for item in side] for side in (items, others))
        for name in _missing(names, {*known, *own}):
            reason = "it takes a job that still has the class"
            yield Finding(UNKNOWN, _at(place, f"{title} {name}"), reason)
        if not _is_prefix(names, own):
            yield Finding(RECONFIGURED, place, "classes are registered in another order")
    if old.kryo_version != new.kryo_version:
        reason = (
            f"Kryo {old.kryo_version} wrote values that Kryo {new.kryo_version} does not read, "
            "which Flink does not look at"
        )
        yield Finding(INCOMPATIBLE, place, reason)


def _avro(
    old: AvroSerializer, new: AvroSerializer, known: Collection[str], place: str
) -> Iterator[Finding]:
    """Yield a Finding for what Avro reads otherwise. Flink needs the old class, whatever it is."""
    names = [old.java_class] if not old.java_class.startswith("org.apache.avro.") else []
    for name in _missing(names, {*known, new.java_class}):
        yield Finding(UNKNOWN, place, f"it takes a job that still has {name}")
    try:
        is_same = old.schema == new.schema or schemas_are_equal(old.schema, new.schema)
        reasons = [] if is_same else unread(old.schema, new.schema)
    except (KeyGroupsError, UnreadableError) as error:
        yield Finding(UNKNOWN, place, f"the schemas of Avro are not compared: {error}")
        return
    yield from (Finding(INCOMPATIBLE, _at(place, inside), reason) for inside, reason in reasons)
    if not is_same and not reasons:
        yield Finding(AFTER_MIGRATION, place, "another schema, by which Avro reads the values")


def _sql(old: Serializer, new: Serializer, place: str) -> Iterator[Finding]:
    """Yield the columns whose logical types are not equal; Flink migrates no SQL type."""
    if old != new:
        yield Finding(INCOMPATIBLE, place, _columns(old, new))
    elif isinstance(old, WithStreams) and isinstance(new, WithStreams):
        nested = [kind for field in old.fields for kind in field.walk()]
        if any(map(_is_read_in_part, nested)) and old.streams != new.streams:
            reason = "comments of nested fields, or the classes of RAW, may not be the same"
            yield Finding(UNKNOWN, place, reason)


def _is_read_in_part(kind: LogicalType) -> bool:
    """Return whether Flink compares more of a type: comments, where no names are read, a class."""
    return kind.name == "RAW" or (kind.name == "ROW" and not kind.names)


def _columns(old: Serializer, new: Serializer) -> str:
    if not isinstance(old, RowDataSerializer):
        return _change(old, new)
    pairs = enumerate(zip_longest(map(str, old.fields), map(str, new.fields), fillvalue="none"))
    changed = [f"column {number}: {was} -> {now}" for number, (was, now) in pairs if was != now]
    return "; ".join(changed) or _change(old, new)
