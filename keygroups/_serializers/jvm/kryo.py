"""The serializer of values that Flink leaves to Kryo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keygroups._checks import show
from keygroups._serializers.base import JAVA, Serializer
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, utf
from keygroups._serializers.jvm.kryo_bodies import BODIES
from keygroups._serializers.jvm.kryo_classes import (
    KEY_TYPES,
    PRIMITIVES,
    SUPERTYPES,
    KryoClass,
    KryoFields,
)
from keygroups._serializers.jvm.kryo_fields import KryoOutput
from keygroups._serializers.jvm.kryo_input import KryoInput, Registrations
from keygroups._serializers.jvm.kryo_output import WRITE_BODIES, head_by_name
from keygroups._serializers.jvm.optional_maps import (
    OptionalItem,
    read_optional_map,
    write_optional_map,
)
from keygroups.errors import InvalidValueError
from keygroups.types import INT, LONG, STRING

# Flink's own connectors leave these classes to Kryo: KafkaTopicPartition of Kafka's old consumer,
# SequenceNumber of Kinesis' consumer.
_CONNECTORS = "org.apache.flink.streaming.connectors."
_OF_FLINK: dict[str, KryoClass] = {
    f"{_CONNECTORS}kafka.internals.KafkaTopicPartition": KryoFields(
        cachedHash=INT, partition=INT, topic=STRING, is_final=True
    ),
    f"{_CONNECTORS}kinesis.model.SequenceNumber": KryoFields(
        cachedHash=INT, sequenceNumber=STRING, subSequenceNumber=LONG
    ),
}


class KryoSerializer(Serializer):
    """A value of any class, as Kryo wrote it; known classes of Java and described ones are read.

    `maps` are those of the snapshot: the classes that the job registers, in order, with their
    serializers, and the serializers that the job gives to all classes of a kind. `described` are
    the classes that a user describes in `serializers`.

    Flink: KryoSerializer.
    """

    name, snapshot, versions = "KRYO", f"{JAVA}kryo.KryoSerializerSnapshot", (2,)
    takes_null = True

    def __init__(
        self,
        java_class: str,
        kryo_version: int = 5,
        maps: Sequence[Sequence[OptionalItem]] = ((), (), ()),
        described: Sequence[tuple[str, KryoClass]] = (),
    ) -> None:
        self.java_class = java_class
        self.kryo_version = kryo_version
        self.maps = tuple(map(tuple, maps))
        self.described = tuple(described)
        registered, *defaults = self.maps
        registrations = Registrations(
            [item.name for item in registered],
            [item.name for item in registered if item.value != _plain(item.name)],
            BODIES,
            {**_OF_FLINK, **dict(described)},
        )
        custom = [item.name for items in defaults for item in items]

        key_type = KEY_TYPES.get(java_class)

        def read_kryo(data: bytes, pos: int) -> tuple[Any, int]:
            kryo = KryoInput(data, pos, kryo_version, registrations)
            if key_type is None:
                return kryo.value(), kryo.pos
            name = kryo.class_name()
            if name not in (java_class, None):
                raise ValueError(f"an object of {show(name)}, where {java_class} has none below")
            return None if name is None else kryo.object(java_class), kryo.pos

        # No subclass of a class outside these tables is readable. And if the job has its own
        # serializer for a readable class, only the job knows the bytes of a value.
        readable = {*registrations.bodies, *SUPERTYPES}
        if java_class in readable and readable.isdisjoint(custom):
            self.read = read_kryo
            self.key_type = key_type
        write = WRITE_BODIES.get(java_class)
        if write is not None and self.read is not None and not custom:
            head = registrations.head_of(java_class) or head_by_name(java_class, kryo_version)

            def write_kryo(value: Any) -> bytes:
                return b"\0" if value is None else head + write(value, kryo_version)

            self.write = write_kryo
        elif described and self.read is not None and not custom:
            classes = dict(described)
            self.writes_keys = False  # another order, or other references, are the same value
            self.write = lambda value: KryoOutput(kryo_version, registrations, classes).written(
                java_class, value
            )
        super().__init__(java_class, kryo_version, self.maps, self.described)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        """Read the class, and the maps of registrations and of default serializers."""
        java_class = cursor.utf()
        maps = [
            [
                OptionalItem(name, key, None if value is None else value.take(value.left))
                for name, key, value in read_optional_map(cursor)
            ]
            for _ in range(3)
        ]
        described = [
            (name, made)
            for name, made in cursor.context.serializers.items()
            if isinstance(made, KryoClass)
        ]
        return cls(java_class, cursor.context.kryo_version, maps, described)

    def contents(self) -> bytes:
        """Return the class and the three maps."""
        return utf("class", self.java_class) + b"".join(map(write_optional_map, self.maps))


def _plain(name: str) -> bytes:
    """Return the registration, in a snapshot, of a class without a serializer of the job's own."""
    return utf("class", name) + i32(0)


def check_described(serializers: Mapping[str, object]) -> None:
    """Raise InvalidValueError for a field of a class that is neither readable nor described."""
    known = {*PRIMITIVES, *BODIES, *SUPERTYPES, *_OF_FLINK, *serializers}
    for java_class, described in serializers.items():
        if isinstance(described, KryoFields):
            for name, declared in described.declared():
                for class_name in declared.names():
                    if class_name not in known:
                        raise InvalidValueError(
                            f"field {show(name)} of {show(java_class)} must be of classes that "
                            f"are read here, or that are in serializers, got {show(class_name)}"
                        )


def check_kryo_version(name: str, part: object, version: int) -> None:
    """Raise InvalidValueError for values of another Kryo than that of a savepoint.

    Flink reads all of a savepoint by one, and its Kryo 5 what 2 wrote as something else. `part`
    is a serializer, or a tuple of some.
    """
    if others := {*kryo_versions(part)} - {version}:
        raise InvalidValueError(
            f"{name} must have values of Kryo {version}, as the savepoint has, got those of Kryo "
            f"{others.pop()}"
        )


def kryo_versions(part: object) -> Iterator[int]:
    """Yield the version of each Kryo of a serializer, or of those in a tuple."""
    if isinstance(part, KryoSerializer):
        yield part.kryo_version
    elif isinstance(part, (tuple, Serializer)):
        for argument in part if isinstance(part, tuple) else part.__reduce__()[1]:
            yield from kryo_versions(argument)
