"""Values of the classes that a user describes, written as Kryo writes new objects.

Nothing is written of which the bytes depend on what a value does not say: the class of a field
that may be of several, and whether two fields share an object that can change.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from keygroups._checks import MAX_DEPTH, exact_repr, show
from keygroups._serializers.jvm.kryo_classes import (
    PRIMITIVES,
    DeclaredClass,
    KryoClass,
    KryoFields,
)
from keygroups._serializers.jvm.kryo_input import Registrations
from keygroups._serializers.jvm.kryo_output import WRITE_BODIES
from keygroups._serializers.scalars import write_varint
from keygroups._values.checks import expect
from keygroups._values.java_lang import unscaled_value
from keygroups._values.java_values import Pojo
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError

_LISTS = frozenset(("java.util.ArrayList", "java.util.LinkedList"))
_SET = "java.util.HashSet"  # a LinkedHashSet has an order, which a set does not say
_MAPS = frozenset(("java.util.HashMap", "java.util.LinkedHashMap"))
_OF_ANY: Mapping[type, str] = {
    str: "java.lang.String",
    bool: "java.lang.Boolean",
    Decimal: "java.math.BigDecimal",
    UUID: "java.util.UUID",
}
"""The class of values that are of no other one of Java's, whatever the field is declared as."""


class KryoOutput:
    """Writes one value, as `KryoInput` reads it.

    Kryo: Kryo.writeClassAndObject, MapReferenceResolver.
    """

    def __init__(
        self, version: int, registrations: Registrations, described: Mapping[str, KryoClass]
    ) -> None:
        self._version = version
        self._registrations = registrations
        self._described = described
        self._numbers = {name: number for number, name in registrations.classes.items()}
        self._data: list[bytes] = []
        self._names: dict[str, int] = {}
        # Mutable objects by Python's id: one that occurs twice is refused, as Kryo refers to one
        # object of Java by its number, and copies of it are two.
        self._shared: dict[int, Any] = {}
        self._constants: dict[tuple[str, str], int] = {}
        self._count = 0  # objects written so far that Kryo numbers
        self._depth = 0

    def written(self, java_class: str, value: Any) -> bytes:
        """Return the bytes of a value of a class, or of one below it."""
        self._value(DeclaredClass(java_class), value)
        return b"".join(self._data)

    def _add(self, data: bytes) -> None:
        self._data.append(data)

    def _value(self, declared: DeclaredClass, value: Any, is_known: bool = True) -> None:
        """Write a class, and an object of it; Kryo may not have known its type arguments."""
        if value is None:
            self._add(b"\0")
            return
        name = self._class_of(declared.name, value)
        self._class(name)
        self._object(name, value, False, declared.arguments, is_known)

    def _class_of(self, declared: str, value: Any) -> str:
        """Return the class of a value in a field that may be of several."""
        if isinstance(value, Pojo):
            return value.java_class
        if declared in _BODIES or declared in {*_LISTS, _SET, *_MAPS, *self._described}:
            return declared
        name = _OF_ANY.get(type(value))
        if name is None:
            raise UnsupportedKeyTypeError(
                f"{show(value)} of a {declared} cannot be written, as it does not say of which "
                "class it is: declare that class in KryoFields, such as java.util.ArrayList"
            )
        return name

    def _class(self, name: str) -> None:
        number = self._numbers.get(name)
        if number is not None:
            self._add(write_varint(number + 2))
            return
        place = self._names.get(name)
        if place is None:
            place = self._names[name] = len(self._names)
            self._add(b"\1" + write_varint(place) + _text(name, self._version))
        else:
            self._add(b"\1" + write_varint(place))

    def _object(
        self,
        name: str,
        value: Any,
        may_be_null: bool,
        arguments: tuple[DeclaredClass, ...],
        is_known: bool,
    ) -> None:
        """Write an object behind its class. Kryo: Kryo.writeReferenceOrNull."""
        if value is None:
            self._add(b"\0")
            return
        if name in self._registrations.unreferenced[self._version]:
            if may_be_null:
                self._add(b"\1")
        elif self._is_referred(name, value):
            return
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidValueError(f"a value of Kryo must nest at most {MAX_DEPTH} deep")
        self._body(name, value, arguments, is_known)
        self._depth -= 1

    def _is_referred(self, name: str, value: Any) -> bool:
        """Write the mark of a new object, or the number of an enum constant written before.

        Returns whether it was the latter. Raises UnsupportedKeyTypeError for a mutable object that
        occurs twice.
        """
        constant = (name, value) if type(value) is str and name in self._described else None
        if constant in self._constants:
            self._add(write_varint(self._constants[constant] + 2))
            return True
        if isinstance(value, (Pojo, list, dict, set)):
            if id(value) in self._shared:
                raise UnsupportedKeyTypeError(
                    f"{show(value)} is twice in a value, which only the job writes: as one object "
                    "of Java's, or as two"
                )
            self._shared[id(value)] = value
        if constant is not None:
            self._constants[constant] = self._count
        self._count += 1
        self._add(b"\1")
        return False

    def _body(
        self, name: str, value: Any, arguments: tuple[DeclaredClass, ...], is_known: bool
    ) -> None:
        if name not in self._registrations.bodies:
            raise UnsupportedKeyTypeError(f"an object of {show(name)} takes the job to write")
        described = self._described.get(name)
        write = _BODIES.get(name)
        if isinstance(described, KryoFields):
            self._fields(name, described, value)
        elif described is not None:
            if value not in described.constants:
                raise InvalidValueError(
                    f"a {name} must be one of {show(described.constants)}, got {show(value)}"
                )
            self._add(write_varint(described.constants.index(value) + 1))
        elif name in _LISTS:
            _check(name, value, list)
            self._elements(value, arguments, is_known)
        elif name == _SET:
            _check(name, value, set, frozenset)
            self._elements(sorted(value, key=exact_repr), arguments, is_known)
        elif name in _MAPS:
            _check(name, value, dict)
            self._pairs(value, arguments, is_known)
        elif write is not None:
            self._add(write(value, self._version))
        else:
            raise UnsupportedKeyTypeError(f"an object of {show(name)} cannot be written here")

    def _fields(self, name: str, described: KryoFields, value: Any) -> None:
        if not isinstance(value, Pojo) or value.java_class != name:
            raise InvalidTypeError(f"a {name} must be a Pojo of that class, got {show(value)}")
        names = [field for field, _ in described.fields]
        if {*value._asdict()} != {*names}:
            raise InvalidValueError(
                f"a Pojo of {name} must have the fields {show(names)}, got {show(value)}"
            )
        for field, declared in described.declared():
            self._field(declared, value[field])

    def _field(self, declared: DeclaredClass, value: Any) -> None:
        """Write a field. Kryo: ReflectField.write."""
        boxed = PRIMITIVES.get(declared.name)
        if boxed is not None:
            if value is None:
                raise InvalidValueError(f"a {declared.name} must not be None")
            self._add(WRITE_BODIES[boxed](value, self._version))
        elif declared.name in self._registrations.finals:
            self._object(declared.name, value, True, declared.arguments, True)
        else:
            self._value(declared, value)

    def _elements(
        self, elements: list[Any], arguments: tuple[DeclaredClass, ...], is_known: bool
    ) -> None:
        """Write a collection. Kryo: CollectionSerializer.write."""
        element = arguments[0] if arguments else _ANYTHING
        if self._version == 2:
            self._add(write_varint(len(elements)))
            for part in elements:
                self._part(element, part, is_known)
            return
        is_final = element.name in self._registrations.finals
        if not elements:
            self._add(b"\1")
            return
        has_null = any(part is None for part in elements)
        if is_final:
            self._add(_flagged(has_null, len(elements) + 1))
            for part in elements:
                self._object(element.name, part, has_null, element.arguments, True)
            return
        classes = {self._class_of(element.name, part) for part in elements if part is not None}
        self._add(_flagged(len(classes) < 2, len(elements) + 1))
        if len(classes) > 1:
            for part in elements:
                self._value(element, part)
        elif not classes:
            self._add(b"\0")
        else:
            [name] = classes
            self._class(name)
            self._add(bytes([has_null]))
            for part in elements:
                self._object(name, part, has_null, element.arguments, True)

    def _pairs(
        self, pairs: Mapping[Any, Any], arguments: tuple[DeclaredClass, ...], is_known: bool
    ) -> None:
        """Write a map. Kryo: MapSerializer.write."""
        key, value = (*arguments, _ANYTHING, _ANYTHING)[:2]
        self._add(write_varint(len(pairs) + (self._version == 5)))
        for key_part, value_part in pairs.items():
            self._part(key, key_part, is_known)
            self._part(value, value_part, is_known)

    def _part(self, declared: DeclaredClass, value: Any, is_known: bool) -> None:
        """Write an element, a key or a value; Kryo 2 passes on no arguments of its class."""
        is_passed = self._version == 5
        if is_known and declared.name in self._registrations.finals:
            self._object(declared.name, value, True, declared.arguments, is_passed)
        else:
            self._value(declared, value, is_passed)


_ANYTHING = DeclaredClass("java.lang.Object")


def _big_integer(value: Any, version: int) -> bytes:
    """Write the length above 0, and the bytes. Kryo: DefaultSerializers.BigIntegerSerializer."""
    number = expect("BIG_INT", value, int, "an int")
    data = number.to_bytes(((number + (number < 0)).bit_length() + 8) // 8, "big", signed=True)
    return write_varint(len(data) + 1) + data


def _big_decimal(value: Any, version: int) -> bytes:
    unscaled, scale = unscaled_value(expect("BIG_DEC", value, Decimal, "a Decimal"))
    zigzag = 2 * scale if scale >= 0 else -2 * scale - 1
    return _big_integer(unscaled, version) + write_varint(zigzag)


_BODIES = {
    **WRITE_BODIES,
    "java.math.BigDecimal": _big_decimal,
    "java.math.BigInteger": _big_integer,
}
_text = WRITE_BODIES["java.lang.String"]


def _flagged(flag: bool, number: int) -> bytes:
    """Return a varint whose first byte has a flag (80), a mark of more bytes (40) and 6 bits.

    True and 100 are e4 01. Kryo: Output.writeVarIntFlag.
    """
    first = number & 0x3F | 0x80 * flag
    return bytes([first]) if number < 0x40 else bytes([first | 0x40]) + write_varint(number >> 6)


def _check(name: str, value: Any, *classes: type) -> None:
    if type(value) not in classes:
        raise InvalidTypeError(f"a {name} must be a {classes[0].__name__}, got {show(value)}")
