"""The serializer of whatever Flink leaves to Kryo."""

from __future__ import annotations

from collections.abc import Sequence

from keygroups._serializers.base import JAVA, Serializer
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import utf
from keygroups._serializers.optional_maps import (
    OptionalItem,
    read_optional_map,
    write_optional_map,
)


class KryoSerializer(Serializer):
    """What Kryo wrote, which takes the job's classes to read."""

    name, snapshot, versions = "KRYO", f"{JAVA}kryo.KryoSerializerSnapshot", (2,)

    def __init__(
        self, java_class: str, maps: Sequence[Sequence[OptionalItem]] = ((), (), ())
    ) -> None:
        self.java_class = java_class
        self.maps = tuple(map(tuple, maps))
        super().__init__(java_class, self.maps)

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
        return cls(java_class, maps)

    def contents(self) -> bytes:
        """Return what `from_contents` reads."""
        return utf("class", self.java_class) + b"".join(map(write_optional_map, self.maps))
