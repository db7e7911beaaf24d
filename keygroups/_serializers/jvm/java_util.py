"""Values of java.lang and java.util in Java's object streams: numbers, texts, lists and maps.

The fields, and what a class writes besides them, are those of the JDK's "Serialized Form"; List.of
and Map.of, and what is made of streams, are a java.util.CollSer, whose tag says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keygroups._serializers.base import Serializer, UnreadableError, checked_write
from keygroups._serializers.collections import as_dict
from keygroups._serializers.data_input import check_repeated
from keygroups._serializers.jvm.objects import JavaObject, read_java_value
from keygroups._serializers.scalars import BOOLEAN, DOUBLE, INT, LONG

Parts = Callable[[JavaObject], Sequence[Any]]

_MAX_DEPTH = 100
_NUMBERS: dict[str, tuple[Serializer, type]] = {  # the value is the last of the stream's bytes
    "java.lang.Boolean": (BOOLEAN, bool),
    "java.lang.Double": (DOUBLE, float),
    "java.lang.Integer": (INT, int),
    "java.lang.Long": (LONG, int),
}
_COLL_SER = "java.util.CollSer"
_MAP_TAG, _LIST_TAGS = 3, (1, 4)  # JDK: CollSer.IMM_MAP, IMM_LIST, IMM_LIST_NULLS


def _written(made: JavaObject) -> Sequence[Any]:
    """Return the objects behind the block of numbers that a class writes first."""
    return made.written[1:]


_LISTS: dict[str, Parts] = {
    "java.util.ArrayList": _written,
    "java.util.Arrays$ArrayList": lambda made: made.fields["a"],
    "java.util.Collections$EmptyList": lambda made: (),
    "java.util.Collections$SingletonList": lambda made: (made.fields["element"],),
    "java.util.LinkedList": _written,
    "java.util.concurrent.CopyOnWriteArrayList": _written,
}
_MAPS: dict[str, Parts] = {
    "java.util.Collections$EmptyMap": lambda made: (),
    "java.util.Collections$SingletonMap": lambda made: (made.fields["k"], made.fields["v"]),
    "java.util.HashMap": _written,
    "java.util.LinkedHashMap": _written,
    "java.util.TreeMap": _written,
    "java.util.concurrent.ConcurrentHashMap": lambda made: made.written[:-2],  # null, null end it
}
_AROUND: dict[str, str] = {  # views, and the field with the list or the map
    "java.util.Collections$UnmodifiableList": "list",
    "java.util.Collections$UnmodifiableMap": "m",
}


def value_of(content: Any, size: int) -> Any:
    """Return the value of a stream's object, and of those in it; `size` is the stream's bytes.

    Raises UnreadableError for an object of another class, or of one of these in another form, and
    ValueError where references repeat too many bytes.
    """
    return _JavaValues(size).value(content, 0)[0]


def with_number(stream: bytes, value: float) -> bytes:
    """Return the stream of a number with another value of its class.

    Raises InvalidTypeError and InvalidValueError for a value that the class does not hold.
    """
    content, _ = read_java_value(stream, 0)
    serializer, _ = _NUMBERS[content.java_class]
    data = checked_write("JAVA", serializer, value)
    return stream[: -len(data)] + data


class _JavaValues:
    """Makes values of objects: each once, however often the stream refers to it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._repeated = 0
        # A value by the object, None while it is made, with its weight and its height.
        self._made: dict[int, tuple[Any, int, int] | None] = {}

    def value(self, content: Any, depth: int) -> tuple[Any, int, int]:
        """Return the value of an object or a text, the bytes that it may show, and its height."""
        if content is None:
            return None, 1, 0
        if depth > _MAX_DEPTH:
            raise UnreadableError(f"lists and maps nest more than {_MAX_DEPTH} deep")
        known = id(content)
        if known in self._made:
            made = self._made[known]
            if made is None:
                raise UnreadableError("a list or a map that is in itself")
            self._repeated += made[1]
            check_repeated(self._repeated, self._size)
        else:
            self._made[known] = None
            made = self._made[known] = self._new(content, depth)
        if depth + made[2] > _MAX_DEPTH:
            raise UnreadableError(f"lists and maps nest more than {_MAX_DEPTH} deep")
        return made

    def _new(self, content: Any, depth: int) -> tuple[Any, int, int]:
        if isinstance(content, str):
            return content, len(content) + 1, 0
        if not isinstance(content, JavaObject):
            raise UnreadableError("an array, an enum or a class")
        name = content.java_class
        if name in _NUMBERS:
            value = content.fields.get("value")
            if type(value) is not _NUMBERS[name][1] or len(content.fields) > 1:
                raise UnreadableError(f"a {name} of another form")
            return value, 8, 0
        if name in _AROUND:
            inside = content.fields.get(_AROUND[name])
            if inside is None:
                raise UnreadableError("a view of nothing")
            return self.value(inside, depth + 1)
        parts, is_map = self._parts(content)
        inside = [self.value(part, depth + 1) for part in parts]
        values = [value for value, _, _ in inside]
        weight = 1 + sum(weight for _, weight, _ in inside)
        height = 1 + max((height for _, _, height in inside), default=0)
        made = as_dict([*zip(values[::2], values[1::2])]) if is_map else values
        return made, weight, height

    def _parts(self, content: JavaObject) -> tuple[Sequence[Any], bool]:
        """Return the elements of a list, or the keys and values of a map, and which it is."""
        name = content.java_class
        try:
            if name == _COLL_SER:
                tag = content.fields["tag"] & 0xFF
                parts, is_map = _written(content), tag == _MAP_TAG
                if not is_map and tag not in _LIST_TAGS:
                    raise UnreadableError("a set")
            else:
                is_map = name in _MAPS
                parts = (_MAPS if is_map else _LISTS)[name](content)
        except (KeyError, TypeError):
            raise UnreadableError(f"an object of {name}") from None
        if not isinstance(parts, (list, tuple)) or (is_map and len(parts) % 2):
            raise UnreadableError(f"a {name} of another form")
        return parts, is_map
