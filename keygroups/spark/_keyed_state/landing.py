"""The column that makes Spark put a key's state into the partition of its Flink subtask.

A stateful operator of Spark keeps a group in the state partition `pmod(hash(grouping columns),
spark.sql.shuffle.partitions)`, and takes no other. `hash` is murmur3, where the hash of one
column is the seed for the next, and each step of murmur3 can be undone. So one more grouping
column, an int computed from the others, can give the hash any value: here the subtask's number.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column

from keygroups.spark._columns.portable import Portable

_MASK, _SIGN = 0xFFFFFFFF, 1 << 31
# Of murmur3_x86_32: what a block is multiplied with before and after its rotation by 15, the
# factor and summand of a round behind a rotation by 13, the factors of the finaliser.
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_FACTOR, _SUMMAND = 5, 0xE6546B64
_FINAL_1, _FINAL_2 = 0x85EBCA6B, 0xC2B2AE35


def lands_on(path: Portable, key: Sequence[Column], subtask: Column, parallelism: int) -> Column:
    """Return the int for which `hash(*key, int)` is the subtask's number."""
    F = path.F
    blocks = [_block_xor_seed(target) for target in range(parallelism)]
    mixed = path.nth(blocks, "int", subtask).bitwiseXOR(F.hash(*key))
    block = _times(path, mixed, _inverse(_C2)).bitwiseAND(F.lit(_MASK))
    turned = F.shiftrightunsigned(block, 15).bitwiseOR(F.shiftleft(block, 17))
    return _times(path, _signed(path, turned), _inverse(_C1)).cast("int")


def _times(path: Portable, number: Column, factor: int) -> Column:
    """Multiply modulo 2^32. Both are signed, so that the bigint never overflows."""
    F = path.F
    return _signed(path, number.cast("bigint") * F.lit((factor ^ _SIGN) - _SIGN))


def _signed(path: Portable, number: Column) -> Column:
    """Return the low 32 bits of a bigint as a number by sign, which a cast would refuse."""
    F = path.F
    signed: Column = number.bitwiseAND(F.lit(_MASK)).bitwiseXOR(F.lit(_SIGN)) - F.lit(_SIGN)
    return signed


def _block_xor_seed(target: int) -> int:
    """Undo the end of murmur3 of one int for a hash; what is left is the mixed block xor seed."""
    number = target
    number ^= number >> 16
    number = number * _inverse(_FINAL_2) & _MASK
    number ^= number >> 13 ^ number >> 26
    number = number * _inverse(_FINAL_1) & _MASK
    number ^= number >> 16
    number ^= 4  # the length in bytes
    number = (number - _SUMMAND) * _inverse(_FACTOR) & _MASK
    number = (number >> 13 | number << 19) & _MASK
    return (number ^ _SIGN) - _SIGN


def _inverse(odd: int) -> int:
    return pow(odd, -1, 1 << 32)
