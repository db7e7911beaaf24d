"""Classes of the lab's job as a user describes them to Kryo, and values of them in Python."""

from __future__ import annotations

from typing import Any

from keygroups import types
from keygroups.savepoint import KryoEnum, KryoFields, Pojo
from support.bytes.flink_values import value_of
from support.inside.serializers import KryoSerializer

COLOR = KryoEnum("RED", "GREEN", "BLUE", "VIOLET_é")
PLAIN = KryoFields(x=types.INT, y=types.STRING, zs=types.LIST(types.LONG))
SIMPLE = KryoFields(
    {"big": "java.lang.Long", "flag": "java.lang.Boolean"},
    id="int",
    name="java.lang.String",
    ratio=types.DOUBLE,
)
DESCRIBED: dict[str, KryoFields | KryoEnum] = {
    "P$Color": COLOR,
    "P$Plain": PLAIN,
    "P$Simple": SIMPLE,
    "java.math.RoundingMode": KryoEnum(
        *("UP", "DOWN", "CEILING", "FLOOR", "HALF_UP", "HALF_DOWN", "HALF_EVEN", "UNNECESSARY")
    ),
}
OF_THE_JOB = (
    *("EnumMap", "EnumSet", "Plain", "Simple", "enum", "enum.jdk", "in.list", "in.map"),
    "registered",
)


def in_python(value: Any) -> Any:
    """Return a value of a case, of which a class that Kryo wrote is around the value."""
    if isinstance(value, dict) and "kryo" in value:
        return in_python(value["value"])
    if isinstance(value, dict) and "pojo" in value:
        fields = {name: in_python(field) for name, field in value["fields"].items()}
        return Pojo(value["pojo"], fields)
    if isinstance(value, dict) and "enum" in value:
        return value["enum"]
    if isinstance(value, dict) and "set" in value:
        return {*map(in_python, value["set"])}
    if isinstance(value, dict) and "map" in value:
        return {in_python(key): in_python(item) for key, item in value["map"]}
    if isinstance(value, dict) and "list" in value:
        return [*map(in_python, value["list"])]
    return value_of(value)


def kryo(java_class: str, version: int = 5, **described: Any) -> KryoSerializer:
    by_name = {name.replace("_", "."): made for name, made in described.items()}
    return KryoSerializer(java_class, version, described=[*by_name.items()])


# The class by its number, or by its name: the mark of one, the number of the name, the name.
def by_name(java_class: str, number: int = 0) -> bytes:
    name = java_class[:-1].encode() + bytes([ord(java_class[-1]) | 0x80])
    return bytes([1, number]) + name
