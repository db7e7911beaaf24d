"""The column that makes Spark put a key's state into the partition of its Flink subtask.

A stateful operator of Spark keeps a group in the state partition `pmod(hash(grouping columns),
spark.sql.shuffle.partitions)`, and takes no other. `hash` is murmur3, where the hash of one
column is the seed for the next, and each step of murmur3 can be undone. So one more grouping
column, an int computed from the others, can give the hash any value: here the subtask's number.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import mmh3
from pyspark.sql import Column
from pyspark.sql import types as T

from keygroups.spark._columns import murmur
from keygroups.spark._columns.portable import Portable

_MASK, _SIGN = 0xFFFFFFFF, 1 << 31
_INT = struct.Struct("<i")
_SEED = 42  # Spark's hash starts from it.
# murmur3_x86_32: the factors of a block before and after its rotation by 15.
_BLOCK_1, _BLOCK_2 = 0xCC9E2D51, 0x1B873593
# murmur3_x86_32: the factor and summand of a round after its rotation by 13, the factors of the
# finaliser.
_FACTOR, _SUMMAND = 5, 0xE6546B64
_FINAL_1, _FINAL_2 = 0x85EBCA6B, 0xC2B2AE35


def lands_on(
    backend: Portable, key: Sequence[Column], subtask: Column, parallelism: int
) -> Column:
    """Return the int for which `hash(*key, int)` is the subtask's number."""
    F = backend.F
    blocks = [_block_xor_seed(target) for target in range(parallelism)]
    scrambled = backend.nth(blocks, T.IntegerType(), subtask).bitwiseXOR(F.hash(*key))
    return backend.as_code(murmur.word_of(F, scrambled.cast("bigint")))


def landing_of(number: int, subtask: int) -> int:
    """Return the int for which Spark's `hash(number, int)` of two ints is the subtask's number.

    >>> landing_of(5, 2)
    1526912514
    """
    seed = mmh3.hash(_INT.pack(number), _SEED)
    word = (_block_xor_seed(subtask) ^ seed) * _inverse(_BLOCK_2) & _MASK
    word = (word >> 15 | word << 17) * _inverse(_BLOCK_1) & _MASK
    return (word ^ _SIGN) - _SIGN


def _block_xor_seed(target: int) -> int:
    """Return the scrambled block xor the seed, of which murmur3 of one int makes `target`.

    The steps after that are undone, the last one first: `number ^ number >> 16` by doing it once
    more, a product by that with the inverse factor, a rotation by one to the other side.
    """
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
