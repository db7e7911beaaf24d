"""Keys of Scala's classes, of a known hash, and of the JDK beside Flink's own types.

The hashes are from the golden vectors, or of issues in which people asked.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.golden import lines
from support.inside import serializers
from support.inside.answers import parse_key_type
from support.inside.serializers import (
    CaseClassSerializer,
    Tuple2CaseClassSerializer,
    TupleSerializer,
)
from support.keys.key_encoding import decode_key, decode_key_type

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    hash_code,
    infer_routing,
)
from keygroups.savepoint.values import Left, Right, Some
from keygroups.state_keys import serializer_of
from keygroups.subtask_keys import keys_for_subtasks
from keygroups.testing import assert_subtask
from keygroups.types import (
    BIG_INT,
    BYTE,
    BYTE_BUFFER,
    CASE_CLASS,
    DOUBLE,
    FLOAT,
    HASHED,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE_TIME,
    LONG,
    MAP,
    OBJECTS_HASH,
    OPTIONAL,
    PYFLINK,
    ROW,
    SCALA_BIG_INT,
    SCALA_EITHER,
    SCALA_OPTION,
    SCALA_TUPLE,
    SET,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)

BOTH = pytest.mark.parametrize("scala", ["2.12", "2.13"])
HELLO = ("hello", 7)


@pytest.mark.parametrize(
    ("key_type", "subtask"),
    [
        (TUPLE(STRING, INT), 4),
        (SCALA_TUPLE(STRING, INT, scala="2.12"), 5),
        (SCALA_TUPLE(STRING, INT, scala="2.13"), 7),
        (CASE_CLASS("Key", STRING, INT, scala="2.12"), 5),
        (CASE_CLASS("Key", STRING, INT, scala="2.13"), 3),
    ],
    ids=repr,
)
def test_a_pair_goes_where_its_class_says(key_type: KeyType, subtask: int) -> None:
    assert assign_key_to_parallel_operator(HELLO, 128, 8, key_type) == subtask


@pytest.mark.parametrize(
    ("key_type", "keys"),
    [(INT, [5, -5]), (DOUBLE, [1.5, math.nan]), (STRING, ["a", ""])],
    ids=repr,
)
def test_classes_of_2_12_hash_whatever_their_name(key_type: KeyType, keys: list[Any]) -> None:
    for key in keys:
        old = [hash_code((key,), CASE_CLASS(name, key_type, scala="2.12")) for name in ("A", "B")]
        new = [hash_code((key,), CASE_CLASS(name, key_type, scala="2.13")) for name in ("A", "B")]
        assert old[0] == old[1] == hash_code((key,), SCALA_TUPLE(key_type, scala="2.12"))
        assert new[0] != new[1]


@BOTH
def test_numbers_that_are_equal_in_scala_hash_alike(scala: str) -> None:
    """1 == 1L == 1.0f == 1.0 there, in tuples too; Java's hash codes of them differ."""
    for number in (0, 1, -1, -(2**31), 2**40, -(2**40), 2**62, -(2**63)):
        codes = {
            hash_code((value,), SCALA_TUPLE(key_type, scala=scala))
            for key_type, value in (
                (LONG, number),
                (DOUBLE, float(number)),
                (FLOAT, float(number)),
            )
        }
        assert len(codes) == 1, number
    half = {hash_code((1.5,), SCALA_TUPLE(kind, scala=scala)) for kind in (DOUBLE, FLOAT)}
    assert len(half) == 1


@BOTH
def test_the_ends_of_int_and_long(scala: str) -> None:
    """2^31 equals Int.MaxValue as a Float, and 2^63 Long.MaxValue as either."""

    def code(value: float, key_type: KeyType) -> int:
        return hash_code((value,), SCALA_TUPLE(key_type, scala=scala))

    assert code(2.0**31, FLOAT) == code(2**31 - 1, INT) != code(2.0**31, DOUBLE)
    assert code(2.0**63, FLOAT) == code(2.0**63, DOUBLE) == code(-(2.0**63), DOUBLE)
    assert code(2.0**63, DOUBLE) == code(-(2**31), INT)
    assert code(0.0, DOUBLE) == code(-0.0, FLOAT) == code(0, INT)
    assert code(math.nan, DOUBLE) != code(math.nan, FLOAT)
    assert code(math.inf, DOUBLE) == code(math.inf, FLOAT)
    assert code(1e300, DOUBLE) != code(math.inf, DOUBLE)


@BOTH
def test_options_in_other_classes(scala: str) -> None:
    """None is Scala's None, whatever holds it, and no null: Java's containers ask its hashCode."""
    none, option = hash_code("None"), SCALA_OPTION(INT, scala=scala)
    assert hash_code(None, option) == none
    assert hash_code((None,), TUPLE(option)) == none
    assert hash_code([None], LIST(option)) == 31 + none
    assert hash_code((None,), ROW(option)) == 31 + 31 + none
    assert hash_code({None}, SET(option)) == none
    assert hash_code({"a": None}, MAP(STRING, option)) == 97 ^ none
    assert hash_code(None, OPTIONAL(option)) == 0
    assert hash_code(Some(None), SCALA_OPTION(option, scala=scala)) == hash_code(
        (none,), CASE_CLASS("Some", HASHED, scala=scala)
    )
    assert hash_code(Some(5), option) == hash_code(5, option)
    assert hash_code(Some(None), option) == hash_code(
        (None,), CASE_CLASS("Some", INT, scala=scala)
    )


@BOTH
def test_sides_of_an_either_are_case_classes(scala: str) -> None:
    """In 2.12 their names do not count: the same in a Left and a Right hashes alike."""
    for key_type, value in ((INT, 5), (DOUBLE, 1.0), (LONG, 2**40), (STRING, None)):
        either = SCALA_EITHER(key_type, key_type, scala=scala)
        left, right = hash_code(Left(value), either), hash_code(Right(value), either)
        assert left == hash_code((value,), CASE_CLASS("Left", key_type, scala=scala))
        assert right == hash_code((value,), CASE_CLASS("Right", key_type, scala=scala))
        assert (left == right) == (scala == "2.12")
        assert hash_code([Left(value), None], LIST(either)) == hash_code([left, 0], LIST(INT))


@BOTH
def test_big_ints_are_the_long_that_equals_them(scala: str) -> None:
    """Where none does they are BigIntegers, which else are hashed otherwise: 2^31 - 2^63."""
    product, of_longs = (SCALA_TUPLE(kind, scala=scala) for kind in (SCALA_BIG_INT, LONG))
    for number in (0, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)):
        assert hash_code((number,), product) == hash_code((number,), of_longs)
    for number in (2**63, -(2**63) - 1, 10**30):
        assert hash_code(number, SCALA_BIG_INT) == hash_code(number, BIG_INT)
    assert hash_code(-(2**31) - 1, SCALA_BIG_INT) != hash_code(-(2**31) - 1, BIG_INT)
    assert keys_for_subtasks(128, 5, SCALA_BIG_INT) == keys_for_subtasks(128, 5, INT)


def test_sets_tell_what_is_one_element_in_java() -> None:
    pair = SCALA_TUPLE(SCALA_OPTION(DOUBLE, scala="2.13"), scala="2.13")
    nans = {(float("nan"),), (-float("nan"),)}
    with pytest.raises(InvalidValueError, match="elements must differ in Java too"):
        hash_code(nans, SET(pair))
    some = {(None,), (Some(1.0),), (2.0,)}
    codes = [hash_code(key, pair) for key in some]
    assert (hash_code(some, SET(pair)) - sum(codes)) % 2**32 == 0
    either = SCALA_EITHER(DOUBLE, DOUBLE, scala="2.12")
    rest = hash_code(Left(1.0), either)
    assert hash_code({Left(1.0), Right(1.0)}, SET(either)) == (2 * rest + 2**31) % 2**32 - 2**31
    with pytest.raises(InvalidValueError, match="elements must differ in Java too"):
        hash_code({Left(float("nan")), Left(-float("nan"))}, SET(either))
    # Each side is compared by its own type, of which a STRING's values are what they are.
    two: list[tuple[tuple[KeyType, KeyType], set[Any]]] = [
        ((DOUBLE, STRING), {Left(float("nan")), Left(-float("nan"))}),
        ((STRING, DOUBLE), {Right(float("nan")), Right(-float("nan"))}),
    ]
    for sides, two_nans in two:
        with pytest.raises(InvalidValueError, match="elements must differ in Java too"):
            hash_code(two_nans, SET(SCALA_EITHER(*sides, scala="2.12")))
    same = {Some(1.0), 1.0}
    with pytest.raises(InvalidValueError, match="elements must differ in Java too"):
        hash_code(same, SET(SCALA_OPTION(DOUBLE, scala="2.12")))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: SCALA_TUPLE(scala="2.12"),
            InvalidValueError,
            "SCALA_TUPLE has 1 to 22 fields, got 0",
        ),
        (lambda: SCALA_TUPLE(*[INT] * 23, scala="2.12"), InvalidValueError, "22 fields, got 23"),
        (
            lambda: SCALA_TUPLE(INT, scala="2.11"),
            InvalidValueError,
            "scala must be one of 2.12, 2.13, got '2.11'",
        ),
        (
            lambda: SCALA_TUPLE(INT, scala=2.12),  # type: ignore[arg-type]
            InvalidTypeError,
            "scala must be the text of a version",
        ),
        (lambda: SCALA_TUPLE("INT", scala="2.12"), InvalidTypeError, "is made of key types"),  # type: ignore[arg-type]
        (
            lambda: SCALA_TUPLE(CASE_CLASS("A", INT, scala="2.13"), scala="2.12"),
            InvalidValueError,
            r"one version throughout a key type, got 2\.12 around CASE_CLASS\('A', INT, scala=",
        ),
        (
            lambda: SCALA_EITHER(INT, SCALA_OPTION(INT, scala="2.12"), scala="2.13"),
            InvalidValueError,
            "one version throughout",
        ),
        (lambda: SCALA_EITHER(INT, "INT", scala="2.12"), InvalidTypeError, "is made of key types"),  # type: ignore[arg-type]
        (
            lambda: PYFLINK(SCALA_EITHER(INT, INT, scala="2.12")),
            UnsupportedKeyTypeError,
            "PYFLINK cannot hold SCALA_EITHER",
        ),
        (
            lambda: SCALA_OPTION(LIST(SCALA_TUPLE(INT, scala="2.12")), scala="2.13"),
            InvalidValueError,
            "one version throughout",
        ),
        (lambda: CASE_CLASS(INT, scala="2.13"), InvalidTypeError, "name must be"),  # type: ignore[arg-type]
        (lambda: CASE_CLASS("A", SQL_ROW("INT"), scala="2.13"), InvalidTypeError, "whole key"),
        (lambda: OBJECTS_HASH(INT, start=2**31), InvalidValueError, "start must be from"),
        (lambda: OBJECTS_HASH(INT, start=1.0), InvalidTypeError, "start must be"),  # type: ignore[arg-type]
        (lambda: PYFLINK(BYTE_BUFFER), UnsupportedKeyTypeError, "PYFLINK cannot hold BYTE_BUFFER"),
        (lambda: PYFLINK(HASHED), UnsupportedKeyTypeError, "PYFLINK cannot hold HASHED"),
        (
            lambda: PYFLINK(SCALA_TUPLE(INT, scala="2.12")),
            UnsupportedKeyTypeError,
            "PYFLINK cannot hold SCALA_TUPLE",
        ),
        (
            lambda: serializer_of(CASE_CLASS("A", INT, scala="2.12")),
            UnsupportedKeyTypeError,
            "the serializer of key type CASE_CLASS",
        ),
    ],
)
def test_refused_types(
    make: Callable[[], object], error: type[KeyGroupsError], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        *((name, "by a String of it, or by fields") for name in ("Seq", "vector", "Traversable")),
        ("Iterable", "by a String of it, or by fields"),
        *((f"SCALA_{name}", "by a String of it, or by fields") for name in ("LIST", "SEQ")),
        *((f"SCALA_{name}", "by a String of it, or by fields") for name in ("VECTOR", "SET")),
        ("SCALA_MAP", "by a String of it, or by fields"),
        ("SCALA_BIG_DEC", "by its bigDecimal, a BIG_DEC, or by a String of it"),
        ("SCALA_BIG_DECIMAL", "by its bigDecimal, a BIG_DEC, or by a String of it"),
    ],
)
def test_classes_of_scala_without_a_key_type(name: str, cure: str) -> None:
    """They are refused by name, in Python and in a shell, and none is taken for a SET."""
    key_type: Any = name
    of_elements: Any = f"{name}(INT)"
    for call in (
        lambda: hash_code([5, 5, 5], key_type),
        lambda: hash_code([5, 5, 5], of_elements),
        lambda: parse_key_type(name),
        lambda: parse_key_type(f"{name}(INT)"),
    ):
        with pytest.raises(KeyGroupsError, match=f": no tool can place .*: key the job {cure}$"):
            call()
    with pytest.raises(InvalidValueError, match=r"did you mean SET\?"):
        parse_key_type("SETS")


def test_a_tuple_of_scala_has_up_to_22_fields() -> None:
    codes = [hash_code((7,) * n, SCALA_TUPLE(*[INT] * n, scala="2.13")) for n in range(1, 23)]
    assert len(set(codes)) == 22


@pytest.mark.parametrize(
    ("start", "text"),
    [(1, ""), (0, ", start=0"), (2, ", start=2"), (-(2**31), f", start={-(2**31)}")],
)
def test_the_text_of_an_objects_hash_has_a_start_other_than_1(start: int, text: str) -> None:
    key_type = OBJECTS_HASH(INT, start=start)
    assert repr(key_type) == f"OBJECTS_HASH(INT{text})"
    assert parse_key_type(repr(key_type)) == key_type


def test_eithers_are_in_no_array() -> None:
    pytest.importorskip("pyarrow")
    from keygroups import arrays

    for key_type in (SCALA_EITHER(INT, INT, scala="2.13"), SCALA_BIG_INT):
        with pytest.raises(UnsupportedKeyTypeError, match=f"{re.escape(repr(key_type))} is not h"):
            arrays.hash_code([[1]], SCALA_TUPLE(key_type, scala="2.13"))


def test_there_is_no_version_by_default() -> None:
    """The wrong one would send keys elsewhere without a word."""
    for make in (SCALA_TUPLE, SCALA_OPTION, partial(CASE_CLASS, "A")):
        untyped: Any = make
        with pytest.raises(TypeError, match="scala"):
            untyped(INT)
    with pytest.raises(TypeError, match="scala"):
        SCALA_EITHER(INT, INT)  # type: ignore[call-arg]
    assert CASE_CLASS("A", INT, scala="2.13").name == "A"


@pytest.mark.parametrize(
    ("key", "key_type", "message"),
    [
        ((1,), SCALA_TUPLE(INT, INT, scala="2.12"), r"SCALA_TUPLE\(INT, INT, scala='2.12'\) must"),
        ((1,), CASE_CLASS("A", scala="2.12"), "must have 0 fields"),
        (("a", 2**31), CASE_CLASS("A", STRING, INT, scala="2.13"), "field 1: key of type INT"),
        (("a",), SCALA_TUPLE(LONG, scala="2.13"), "field 0: key of type LONG"),
        ((2**63,), SCALA_TUPLE(LONG, scala="2.13"), "field 0: key of type LONG"),
        ((1,), SCALA_TUPLE(DOUBLE, scala="2.13"), "field 0: key of type DOUBLE"),
        ((0.1,), SCALA_TUPLE(FLOAT, scala="2.13"), "field 0: key of type FLOAT"),
        (("a",), SCALA_TUPLE(FLOAT, scala="2.13"), "field 0: key of type FLOAT must be a float"),
        (1, SCALA_EITHER(INT, INT, scala="2.13"), "must be a Left or a Right of keygroups.savep"),
        (Some(1), SCALA_EITHER(INT, INT, scala="2.13"), "must be a Left or a Right"),
        (Left("a"), SCALA_EITHER(INT, STRING, scala="2.13"), "key of type INT must be an int"),
        (None, SCALA_EITHER(INT, INT, scala="2.12"), "assigned key must not be null"),
        (1.0, SCALA_BIG_INT, "key of type SCALA_BIG_INT must be an int"),
        (None, SCALA_BIG_INT, "assigned key must not be null"),
        ([1], OBJECTS_HASH(INT), "must be a tuple"),
        (None, OBJECTS_HASH(INT), "assigned key must not be null"),
        (None, SCALA_TUPLE(INT, scala="2.12"), "assigned key must not be null"),
        (2**31, HASHED, "key of type HASHED must be from -2147483648 to 2147483647"),
        (1.5, HASHED, "key of type HASHED"),
        (None, HASHED, "assigned key must not be null"),
        ("abc", BYTE_BUFFER, "key of type BYTE_BUFFER must be bytes, got 'abc'"),
        (None, BYTE_BUFFER, "assigned key must not be null"),
        (b"abc", LIST(BYTE), "key of type LIST must be a list"),
    ],
)
def test_refused_keys(key: object, key_type: KeyType, message: str) -> None:
    with pytest.raises(KeyGroupsError, match=message):
        hash_code(key, key_type)


class Message:
    """As the classes that protoc writes: they have a descriptor."""

    DESCRIPTOR = object()


@pytest.mark.parametrize(
    ("key", "cure"),
    [
        (b"abc", "Flink refuses byte.. as a key, .* a ByteBuffer, .* is key_type=BYTE_BUFFER"),
        (Message(), "a protobuf message's hashCode is another one in every JVM: .* by a field"),
        (["hello", 7], r"OBJECTS_HASH\(\.\.\.\) with a tuple of what is in a java\.util\.List"),
        ({"a": 1, "b": "x"}, "which is HASHED with its hash$"),
        (object(), "takes a hash of your own, and so does key_type=HASHED"),
    ],
)
def test_keys_without_a_type_are_told_what_to_do(key: object, cure: str) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match=cure):
        hash_code(key)


@pytest.mark.parametrize(
    ("key", "code", "key_group"),
    [(b"\x03abc", 3970018, 10), (b"abc", 128065, 26), (bytearray(b"\xff\x80"), -3008, 5)],
)
def test_byte_buffers_are_beams_keys(key: bytes, code: int, key_group: int) -> None:
    """As BEAM-8157 had them: with the length of the text before it, and without."""
    assert hash_code(key, BYTE_BUFFER) == code
    assert assign_to_key_group(key, 128, BYTE_BUFFER) == key_group


def test_a_known_hash_is_a_key_like_any_other() -> None:
    """A POJO that returns Objects.hash of its fields, by itself and in a tuple."""
    pojo = hash_code(HELLO, OBJECTS_HASH(STRING, INT))
    assert pojo == -1220934346
    assert assign_to_key_group(pojo, 128, HASHED) == 26
    pair = ("x", pojo)
    assert assign_to_key_group(pair, 128, TUPLE(STRING, HASHED)) == 65
    assert_subtask(pojo, 1, 128, 8, HASHED)
    assert keys_for_subtasks(128, 5, HASHED) == keys_for_subtasks(128, 5, INT)
    assert infer_routing([(pojo, 1)], 8, [HASHED]).candidates[0].key_type == HASHED


def seen(key_type: KeyType, parallelism: int = 16) -> list[tuple[object, int]]:
    keys = [(f"user-{number}", number) for number in range(21)]
    return [
        (key, assign_key_to_parallel_operator(key, 128, parallelism, key_type)) for key in keys
    ]


@pytest.mark.long
@BOTH
def test_routing_inference_knows_scalas_tuples(scala: str) -> None:
    expected = SCALA_TUPLE(STRING, LONG, scala=scala)
    found = infer_routing(seen(SCALA_TUPLE(STRING, INT, scala=scala)), 16)
    assert [candidate.key_type for candidate in found.candidates] == [expected]
    assert found.candidates[0].max_parallelism == 128
    nested = [
        (((key, 1),), subtask) for key, subtask in seen(CASE_CLASS("K", STRING, INT, scala=scala))
    ]
    assert not infer_routing(nested, 16).candidates


@pytest.mark.long
def test_routing_inference_takes_case_classes() -> None:
    pairs = seen(CASE_CLASS("Key", STRING, INT, scala="2.12"))
    assert [c.key_type for c in infer_routing(pairs, 16).candidates] == [
        SCALA_TUPLE(STRING, LONG, scala="2.12")
    ]
    key_type = CASE_CLASS("Key", STRING, INT, scala="2.13")
    assert not infer_routing(seen(key_type), 16).candidates
    assert infer_routing(seen(key_type), 16, [key_type]).candidates[0].key_type == key_type
    assert infer_routing([((), 0)], 1).candidates  # Scala has no tuple of none


def test_serializers_of_scalas_tuples_have_key_types() -> None:
    """A case class may have a hashCode of its own; the tuples, of Flink's own API, have 2.12's."""
    parts = [serializers.STRING, serializers.LONG]
    for cls in (CaseClassSerializer, Tuple2CaseClassSerializer):
        assert cls(parts, "scala.Tuple2").key_type == SCALA_TUPLE(STRING, LONG, scala="2.12")
        assert cls(parts, "scala.Tuple3").key_type is None
        assert cls(parts, "job.Key").key_type is None
    assert CaseClassSerializer([serializers.BYTES], "scala.Tuple1").key_type is None
    nested = CaseClassSerializer([TupleSerializer(parts)], "scala.Tuple1")
    assert nested.key_type == SCALA_TUPLE(TUPLE(STRING, LONG), scala="2.12")
    assert nested.encode((("a", 1),)) == b"\x02a" + (1).to_bytes(8, "big")


def test_recipes_for_hashed_keys() -> None:
    """The formulas in the docstring of keygroups.types, on what the JDK and Avro 1.12.1 said."""
    utc = dt.timezone.utc
    moment = dt.datetime(1970, 1, 1, tzinfo=utc) + dt.timedelta(seconds=-5)  # a Duration
    assert hash_code(1_709_164_800_123, LONG) == -232183306  # java.util.Date
    assert hash_code(moment, INSTANT) + 51 * 7 == 361  # Java's has 7 ns more, which Python lacks
    local = dt.datetime(2024, 2, 29, 1, 2, 3)
    assert hash_code(local, LOCAL_DATE_TIME) ^ 3600 == -735517713
    assert hash_code("a", STRING) ^ hash_code(1, INT) == 96  # Map.Entry
    for text, code in (("hello", 127791473), ("é😀", -939794082), ("", 1)):
        utf8 = text.encode()
        signed = struct.unpack(f"{len(utf8)}b", utf8)
        assert hash_code(signed, OBJECTS_HASH(*[BYTE] * len(utf8))) == code


@pytest.mark.parametrize(
    ("local", "zone", "offset", "code"),
    [
        (dt.datetime(2024, 2, 29, 1, 2, 3), "Europe/Berlin", 3600, -1188739433),
        (dt.datetime(2024, 2, 29, 1, 2, 3), "UTC", 0, -735927841),
        (dt.datetime(2024, 2, 29, 1, 2, 3), "UTC+01:00", 3600, 1944115580),
        (dt.datetime(2024, 2, 29, 1, 2, 3), "America/New_York", -18000, -2065054158),
        (dt.datetime(2024, 2, 29, 1, 2, 3), "Asia/Kolkata", 19800, -1245524845),
        (dt.datetime(2024, 2, 29, 1, 2, 3), None, 0, -735515137),  # Z
        (dt.datetime(2024, 2, 29, 1, 2, 3), None, 3600, -735538321),  # +01:00
        (dt.datetime(2024, 2, 29, 1, 2, 3), None, -28800, -735371656),
        (dt.datetime(2024, 2, 29, 1, 2, 3), None, 3723, -735537364),
        (dt.datetime(2024, 10, 27, 2, 30), "Europe/Berlin", 7200, 352281580),
        (dt.datetime(2024, 10, 27, 2, 30), "Europe/Berlin", 3600, 352285148),
    ],
)
def test_recipe_for_zoned_date_times(
    local: dt.datetime, zone: str | None, offset: int, code: int
) -> None:
    """The formula in the docstring of keygroups.types, on what JDK 17 said."""
    zone_code = (offset if zone is None else hash_code(zone, STRING)) % 2**32
    rotated = zone_code << 3 | zone_code >> 29
    found = hash_code(local, LOCAL_DATE_TIME) ^ offset ^ rotated
    assert (found + 2**31) % 2**32 - 2**31 == code


def test_the_vectors_of_the_jvm() -> None:
    header, *rest = lines("jvm_keys")
    assert header["scala"] == ["2.12.18", "2.13.18"]
    assert len(rest) == 3_157
    for line in rest:
        key_type = decode_key_type(line["type"])
        assert hash_code(decode_key(key_type, line["key"]), key_type) == line["hash"], line


def test_product_arrays() -> None:
    np: Any = pytest.importorskip("numpy")
    pa: Any = pytest.importorskip("pyarrow")
    from keygroups import arrays

    columns = [pa.array(["hello", None]), pa.array([7, None], pa.int32())]
    for key_type in (
        SCALA_TUPLE(STRING, INT, scala="2.13"),
        CASE_CLASS("Key", STRING, INT, scala="2.12"),
        OBJECTS_HASH(STRING, INT, start=-7),
        SCALA_TUPLE(STRING, SCALA_OPTION(INT, scala="2.13"), scala="2.13"),
    ):
        expected = [hash_code(key, key_type) for key in (HELLO, (None, None))]
        assert arrays.hash_code(columns, key_type).tolist() == expected
    empty = pa.array([{}, None], pa.struct([]))
    for name in ("Empty", "polygenelubricants"):  # The latter's hash code is the least Int.
        codes = arrays.hash_code(empty, CASE_CLASS(name, scala="2.13"), nulls="mask")
        assert codes.tolist() == [hash_code(name), None]
    with pytest.raises(InvalidValueError, match="must be 0 columns, got 1"):
        arrays.hash_code(columns[:1], CASE_CLASS("Empty", scala="2.13"))
    for number in (-(2**31) - 1, 2**31):
        with pytest.raises(InvalidValueError, match="HASHED must be from -2147483648 to"):
            arrays.hash_code(pa.array([number]), HASHED)
    nulls = pa.nulls(2)
    option = SCALA_OPTION(LONG, scala="2.12")
    assert arrays.hash_code(nulls, option).tolist() == [hash_code("None")] * 2
    tuples = SCALA_TUPLE(LONG, scala="2.12")
    assert arrays.hash_code([nulls], tuples).tolist() == [hash_code((None,), tuples)] * 2
    lists = pa.array([[], None], pa.list_(pa.int64()))
    of_lists = LIST(SCALA_TUPLE(LONG, scala="2.12"))
    assert arrays.hash_code(lists, of_lists, nulls="mask").tolist() == [1, None]
    with pytest.raises(InvalidValueError, match="key 1: field 0: key of type LONG"):
        arrays.hash_code([np.array([1, 2**63], np.uint64)], tuples)
    with pytest.raises(UnsupportedKeyTypeError, match=r"SET\(INT\) is not hashed in arrays"):
        arrays.hash_code(columns, SCALA_TUPLE(STRING, SET(INT), scala="2.12"))


_INTS = [0.0, -0.0, 5.0, 2.0**30 + 64, -(2.0**31)]
_LONGS = [2.0**31, 2.0**32, -(2.0**52), 2.0**63, -(2.0**63)]
_SINGLES = [1.5, -(2.0**-126), 2.0**-149, 2.0**64, -(2.0**64), math.inf, -math.inf]
_DOUBLES = [0.1, -1e300, 2.0**31 - 0.5, 5e-324, -0.3]
_SHORT_DOUBLES = [2.0**-1000, 2.0**200]  # They have few bits, and are no singles.
_WIDE_INTS = [2.0**31 - 1, 2.0**53 + 2, -(2.0**31) - 1]


def _nans(np: Any, dtype: str) -> Any:
    """A quiet NaN, and more signalling ones than the processor takes at once."""
    quiet, signalling = {
        "f8": (0x7FF8 << 48, (0x7FF0 << 48) + 1),
        "f4": (0x7FC0 << 16, (0x7F80 << 16) + 1),
    }[dtype]
    return np.array([quiet, *[signalling] * 16], dtype.replace("f", "u")).view(dtype)


@BOTH
@pytest.mark.parametrize(
    ("key_type", "dtype", "kinds"),
    [
        (DOUBLE, "f8", [_INTS, _LONGS, _SINGLES, _DOUBLES, _SHORT_DOUBLES, _WIDE_INTS, None]),
        (FLOAT, "f4", [_INTS, _LONGS, _SINGLES, None]),
        (LONG, "i8", [[0, -1, 7], [2**31 - 1, -(2**31)], [2**31, -(2**31) - 1, 2**63 - 1]]),
    ],
    ids=["DOUBLE", "FLOAT", "LONG"],
)
def test_arrays_of_each_mix_of_numbers(
    key_type: KeyType, dtype: str, kinds: list[list[float] | None], scala: str
) -> None:
    """Arrays hash blocks otherwise that have no whole number, or nothing else."""
    np: Any = pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    from keygroups import arrays

    product = SCALA_TUPLE(key_type, scala=scala)
    made = [_nans(np, dtype) if kind is None else np.array(kind, dtype) for kind in kinds]
    for size in range(1, len(made) + 1):
        for some in itertools.combinations(made, size):
            array = np.concatenate(some)
            expected = [hash_code((number,), product) for number in array.tolist()]
            assert arrays.hash_code([array], product).tolist() == expected, array


@BOTH
def test_arrays_of_doubles_that_end_as_singles_do(scala: str) -> None:
    """Those that are Floats hash as their bits: 0x3DCCCCCD has all 24 that a Float can have.

    2^200 has one bit, and is larger than every Float.
    """
    np: Any = pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    from keygroups import arrays

    product, of_bits = (SCALA_TUPLE(kind, scala=scala) for kind in (DOUBLE, HASHED))
    tenth = float(np.float32(0.1))
    codes = {
        tenth: 0x3DCCCCCD,
        1.5: 0x3FC00000,
        2.0**200: 0x4C700000,
        0.1: 0x3FB99999 ^ -0x66666666,
    }
    for numbers in itertools.permutations(codes):
        for size in range(1, len(numbers) + 1):
            some = numbers[:size]
            expected = [hash_code((codes[number],), of_bits) for number in some]
            assert arrays.hash_code([np.array(some)], product).tolist() == expected, some


def test_arrays_of_nans_as_floats() -> None:
    """All are one in Java, 0x7FC00000; a Float has no bits for the last one of this NaN."""
    np: Any = pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    from keygroups import arrays

    nans = np.array([(0x7FF8 << 48) + 1, 0x7FF8 << 48], "u8").view("f8")
    assert arrays.hash_code(nans, FLOAT).tolist() == [0x7FC00000] * 2
    product, of_bits = (SCALA_TUPLE(kind, scala="2.13") for kind in (FLOAT, HASHED))
    expected = hash_code((0x7FC00000,), of_bits)
    assert arrays.hash_code([nans], product).tolist() == [expected] * 2


def test_arrays_of_bytes() -> None:
    np: Any = pytest.importorskip("numpy")
    pa: Any = pytest.importorskip("pyarrow")
    pd: Any = pytest.importorskip("pandas")
    from keygroups import arrays

    rows = [b"abc", b"\x03abc", b"", b"\xff\x80", b"\x80" * 300]
    expected = [hash_code(row, BYTE_BUFFER) for row in rows]
    objects = np.empty(len(rows), object)
    objects[:] = rows
    for keys in (rows, objects, pd.Series(rows), pa.array(rows, pa.large_binary())):
        assert arrays.hash_code(keys, BYTE_BUFFER).tolist() == expected
        with pytest.raises(UnsupportedKeyTypeError, match="key_type=BYTE_BUFFER"):
            arrays.hash_code(keys)
    assert arrays.hash_code([b"", b""], BYTE_BUFFER).tolist() == [1, 1]
    with pytest.raises(InvalidTypeError, match="BYTE_BUFFER takes binaries, but the array"):
        arrays.hash_code(["abc"], BYTE_BUFFER)
    mixed = np.array(["a", b"a"], object)
    with pytest.raises(InvalidTypeError, match="objects of class bytes, and only str, or only"):
        arrays.hash_code(mixed, BYTE_BUFFER)
