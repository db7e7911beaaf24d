"""Known answers and the traps that other ports of this arithmetic fell into.

Key groups of strings and integers below are those that real Flink 2.3.0 gives (the same as in
`tests/vectors/`); hash codes are the JDK's.
"""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import struct
import subprocess
import sys
from decimal import Decimal

import mmh3
import pytest

from keygroups import (
    DEFAULT_LOWER_BOUND_MAX_PARALLELISM,
    UPPER_BOUND_MAX_PARALLELISM,
    KeyGroupLoad,
    KeyGroupRange,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    compute_default_max_parallelism,
    compute_key_group_for_key_hash,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
    hash_code,
    murmur_hash,
    trace_key,
)
from keygroups.types import (
    BYTE,
    FLOAT,
    INT,
    LONG,
    OPTIONAL,
    ROW,
    SQL_ROW,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
)


def test_known_strings() -> None:
    assert assign_to_key_group("A", 128) == 104
    assert assign_to_key_group("B", 128) == 17
    assert [assign_to_key_group(str(i), 128) for i in range(8)] == [
        86, 54, 27, 33, 4, 79, 19, 115,
    ]  # fmt: skip
    assert assign_to_key_group("6666", 128) == 106
    assert hash_code("hello") == 99162322


def test_known_integers() -> None:
    assert [assign_to_key_group(i, 128) for i in range(8)] == [
        94, 86, 127, 113, 7, 126, 18, 113,
    ]  # fmt: skip


def test_the_first_two_integers_share_a_subtask() -> None:
    """At parallelism 2 the Integer keys 0 and 1 both reach subtask 1."""
    assert [assign_key_to_parallel_operator(i, 128, 2) for i in (0, 1)] == [1, 1]


def test_known_ranges_and_defaults() -> None:
    assert compute_key_group_range_for_operator_index(128, 3, 1) == KeyGroupRange(43, 85)
    assert compute_default_max_parallelism(85) == 128
    assert compute_default_max_parallelism(86) == 256
    assert DEFAULT_LOWER_BOUND_MAX_PARALLELISM == 128
    assert UPPER_BOUND_MAX_PARALLELISM == 32768


def test_murmur_of_minus_one() -> None:
    """murmur3_x86_32 of ff ff ff ff with seed 0: Appleby's reference gives 0x76293B50."""
    assert murmur_hash(-1) == 0x76293B50


# --- traps ---------------------------------------------------------------------------------


def test_trap_code_units_not_code_points_nor_bytes() -> None:
    assert hash_code("\U0001f600") == 1772899  # 31 * 0xD83D + 0xDE00
    assert hash_code("é") == 0xE9
    assert hash_code("\ud83d") == 0xD83D  # a lone surrogate is a Java char like any other


def test_trap_bytes_are_signed() -> None:
    assert hash_code(-128, BYTE) == -128
    assert assign_to_key_group(-128, 128, BYTE) == 75


def test_trap_python_hash_is_salted() -> None:
    code = "import keygroups; print(keygroups.assign_to_key_group('user-1', 128))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]


def test_trap_abs_not_mask() -> None:
    """Flink negates a negative murmur; dropping the sign bit gives other key groups."""
    masked = [(mmh3.hash(struct.pack("<i", i)) & 0x7FFFFFFF) % 128 for i in range(8)]
    assert masked != [assign_to_key_group(i, 128) for i in range(8)]  # Flink's, see above
    assert compute_key_group_for_key_hash(-2089875627, 128) == 0  # whose murmur is MIN_VALUE
    assert murmur_hash(-2089875627) == 0


def test_trap_falsy_keys_are_keys() -> None:
    # 0, "" and -0.0 are all keys; JDK: "".hashCode() is 0, Boolean.FALSE is 1237.
    assert hash_code(0) == hash_code("") == hash_code(0.0) == 0
    assert hash_code(-0.0) == -2147483648
    assert hash_code(False) == 1237
    assert assign_to_key_group(0, 128) == assign_to_key_group("", 128) == 94


def test_trap_null_fields_count_zero_and_are_not_dropped() -> None:
    key_type = TUPLE(STRING, INT)
    assert hash_code(("a", 1), key_type) == 3008
    assert hash_code(("a", None), key_type) == 97 * 31
    assert hash_code((None, None), key_type) == 0


def test_trap_timestamp_units() -> None:
    """java.sql.Timestamp hashes epoch milliseconds: not seconds, not microseconds."""
    moment = dt.datetime(1970, 1, 1, 0, 0, 1, 234567)
    assert hash_code(moment, SQL_TIMESTAMP("UTC")) == 1234
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)  # rounds down to -1 ms
    assert hash_code(before, SQL_TIMESTAMP("UTC")) == hash_code(-1, LONG) == 0


def test_trap_a_zone_moves_a_timestamp() -> None:
    noon = dt.datetime(2024, 7, 1, 12)
    berlin = dt.datetime(2024, 7, 1, 10)  # the same instant in UTC
    assert hash_code(noon, SQL_TIMESTAMP("Europe/Berlin")) == hash_code(
        berlin, SQL_TIMESTAMP("UTC")
    )


def test_trap_128_is_not_assumed() -> None:
    with pytest.raises(TypeError, match="max_parallelism"):
        assign_to_key_group("a")  # type: ignore[call-arg]


def test_trap_range_start_is_rounded_up() -> None:
    """Without the ceiling subtask 1 of 3 would start at 42, which subtask 0 has."""
    first, second, third = (
        compute_key_group_range_for_operator_index(128, 3, i) for i in range(3)
    )
    assert (first, second, third) == (
        KeyGroupRange(0, 42),
        KeyGroupRange(43, 85),
        KeyGroupRange(86, 127),
    )
    assert compute_operator_index_for_key_group(128, 3, 42) == 0


def test_trap_trailing_zeros_of_a_decimal_count() -> None:
    assert hash_code(Decimal("1.5")) == 466
    assert hash_code(Decimal("1.50")) == 4652


def test_a_float_is_hashed_as_a_single() -> None:
    assert hash_code(1.0, FLOAT) == 0x3F800000
    assert hash_code(float("nan"), FLOAT) == 0x7FC00000


def test_empty_optional_in_a_row_is_not_null() -> None:
    """RowUtils adds 31 to whatever is not null, and Optional.empty() hashes to 0."""
    assert hash_code(None, OPTIONAL(INT)) == 0
    assert hash_code((None,), ROW(OPTIONAL(INT))) == 31 + 31
    assert hash_code((None,), ROW(INT)) == 31


def test_elements_may_collide_if_they_differ() -> None:
    """JDK: "Aa" and "BB" have one hash, 2112, and are two elements."""
    assert hash_code({"Aa", "BB"}) == 2 * 2112


def test_integers_of_numpy_are_integers() -> None:
    class Int64:
        """What NumPy's integers are to Python: something with __index__."""

        def __init__(self, number: int) -> None:
            self.number = number

        def __index__(self) -> int:
            return self.number

    for key_type, code in ((INT, -1), (LONG, 0)):
        assert hash_code(Int64(-1), key_type) == code
    assert assign_to_key_group("A", Int64(128)) == 104  # type: ignore[arg-type]
    assert compute_key_group_for_key_hash(Int64(-1), 128) == assign_to_key_group(-1, 128, INT)  # type: ignore[arg-type]


def test_long_decimals_are_exact() -> None:
    """Neither the decimal context nor Python's digit limit gets in the way."""
    digits = Decimal((0, (1,) + (0,) * 5000, 0))
    assert hash_code(digits) == hash_code(digits.copy_abs())
    assert hash_code(Decimal("1E+3")) == 31 * 1 - 3


# --- results ---------------------------------------------------------------------------------


def test_trace_of_a_declared_type() -> None:
    trace = trace_key(-1, 128, 3, LONG)
    assert (trace.key_type, trace.hash_code, trace.key_group) == (LONG, 0, 94)
    assert "-1 as LONG" in str(trace)
    assert trace == trace_key(-1, 128, 3, LONG)


def test_trace_of_a_tuple_that_nobody_declared() -> None:
    """A SQL job routes the same two columns by a row, a PyFlink job by a Row around them."""
    key = ("UA", "LAX")
    note = "\nnote         the TUPLE is inferred, which is the Java Tuple of Flink: "
    assert note in str(trace_key(key, 128, 24))
    assert "SCALA_TUPLE(...) or CASE_CLASS(...) for Scala" in str(trace_key(key, 128, 24))
    assert "pass key_type=SQL_ROW(...)" in trace_key(key, 128, 24)._repr_html_()
    for key_type in (TUPLE(STRING, STRING), SQL_ROW("STRING", "STRING")):
        assert "note" not in str(trace_key(key, 128, 24, key_type))
    assert "note" not in str(trace_key("UA", 128, 24))


class Index:
    """A number that is no int, as those of NumPy are none."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


def test_range_of_numbers_that_are_no_int() -> None:
    found = KeyGroupRange(Index(43), Index(85))  # type: ignore[arg-type]  # a user may do so
    assert found == KeyGroupRange(43, 85)
    assert [*map(type, (found.start_key_group, found.end_key_group))] == [int, int]


def test_range_as_a_value() -> None:
    found = KeyGroupRange(43, 85)
    assert eval(repr(found)) == found
    assert eval(repr(KeyGroupRange.EMPTY)) == KeyGroupRange.EMPTY
    for same in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert same == found
    assert pickle.loads(pickle.dumps(KeyGroupRange.EMPTY)) == KeyGroupRange.EMPTY
    assert (str(found), str(KeyGroupRange.EMPTY)) == ("[43, 85]", "[0, -1]")
    assert len(KeyGroupRange.EMPTY) == 0
    assert not KeyGroupRange.EMPTY
    assert list(found) == list(range(43, 86))
    assert "50" not in found


def test_load_as_a_value() -> None:
    load = KeyGroupLoad(4, [5, 1, 1, 1])
    assert load == KeyGroupLoad(4, (5, 1, 1, 1))
    assert load != KeyGroupLoad(4, (5, 1, 1, 2))
    assert KeyGroupLoad(2, [0, 0]).imbalance(2) == 1.0
    assert load.per_subtask(4) == [5, 1, 1, 1]
