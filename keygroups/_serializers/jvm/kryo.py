"""The serializer of whatever Flink leaves to Kryo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keygroups._serializers.base import JAVA, Serializer, UnreadableError
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, utf
from keygroups._serializers.jvm.kryo_bodies import BODIES
from keygroups._serializers.jvm.kryo_input import KryoInput, Registrations
from keygroups._serializers.jvm.kryo_output import WRITE_BODIES
from keygroups._serializers.jvm.optional_maps import (
    OptionalItem,
    read_optional_map,
    write_optional_map,
)

_READ_HERE = ("java.", "sun.", "org.apache.flink.", "[")


class KryoSerializer(Serializer):
    """What Kryo wrote: a value of any class, of which those of Java that tell all are read.

    `maps` are those of the snapshot: the classes of the job's registration in order, with their
    serializers, and the serializers that the job gives to all classes of a kind.

    Flink: KryoSerializer.
    """

    name, snapshot, versions = "KRYO", f"{JAVA}kryo.KryoSerializerSnapshot", (2,)
    takes_null = True

    def __init__(
        self,
        java_class: str,
        kryo_version: int = 5,
        maps: Sequence[Sequence[OptionalItem]] = ((), (), ()),
    ) -> None:
        self.java_class = java_class
        self.kryo_version = kryo_version
        self.maps = tuple(map(tuple, maps))
        registered, *defaults = self.maps
        registrations = Registrations(
            [item.name for item in registered],
            [item.name for item in registered if item.value != _plain(item.name)],
            BODIES,
        )
        of_job = [item.name for items in defaults for item in items]
        read_otherwise = [name for name in of_job if name.startswith(_READ_HERE)]

        def read_kryo(data: bytes, pos: int) -> tuple[Any, int]:
            if read_otherwise:
                raise UnreadableError(f"the job has its own serializer of {read_otherwise[0]}")
            kryo = KryoInput(data, pos, kryo_version, registrations)
            return kryo.value(), kryo.pos

        if java_class.startswith(_READ_HERE):  # values of the job's classes, and so none of these
            self.read = read_kryo
        write = WRITE_BODIES.get(java_class)
        head = registrations.head_of(java_class)
        if write is not None and head is not None and not of_job:

            def write_kryo(value: Any) -> bytes:
                return b"\0" if value is None else head + write(value, kryo_version)

            self.write = write_kryo
        super().__init__(java_class, kryo_version, self.maps)

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
        return cls(java_class, cursor.context.kryo_version, maps)

    def contents(self) -> bytes:
        """Return what `from_contents` reads."""
        return utf("class", self.java_class) + b"".join(map(write_optional_map, self.maps))


def _plain(name: str) -> bytes:
    """Return what the snapshot says of a class that has no serializer of the job's own."""
    return utf("class", name) + i32(0)
