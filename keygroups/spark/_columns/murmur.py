"""Murmur3 of 4-byte words in arithmetic on bigints, as far as Spark's hash() cannot do it.

hash() closes the hash of a value before it goes on to the next, and so has no way to hash a few
words as one value. Here states and words are unsigned numbers of 32 bits. No product or sum is
beyond 64 bits, so ANSI mode makes no difference. Operands are written once each: the expression
would double with each round. Every literal is a bigint, as Spark's analyser takes one
more pass for each level of casts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MASK32 = 0xFFFFFFFF
_FIRST, _SECOND, _PLUS = 0xCC9E2D51, 0x1B873593, 0xE6546B64


def state_after(F: Any, words: Sequence[Any], state: Any) -> Any:
    """Return the state after words, of which None is 0; of both states the low 32 bits count."""
    for word in words:
        if word is not None:
            scrambled = _rotated_less_1(F, _times(F, word, _FIRST), 15)
            state = state.bitwiseXOR(scrambled * long(F, _SECOND) + long(F, _SECOND))
        state = _rotated_less_1(F, _low32(F, state), 13) * long(F, 5) + long(F, 5 + _PLUS)
    return state


def last_word(F: Any, state: Any, size: int) -> Any:
    """Return the word whose murmur3 from a state of 0 is that of a state closed with a size.

    To close the hash takes the state twice, three times over. So a round is put back, and hash()
    does that round and the closing, for which a word has 4 bytes. The low 32 bits count.
    """
    mixed = state.bitwiseXOR(long(F, size ^ 4)) - long(F, _PLUS)
    return word_of(F, _unrotated(F, mixed, 5, 13))


def word_of(F: Any, scrambled: Any) -> Any:
    """Return the word that is xored into the state as this. Of both the low 32 bits count."""
    return _unrotated(F, scrambled, _SECOND, 15) * long(F, _signed(pow(_FIRST, -1, 2**32)))


def _unrotated(F: Any, number: Any, factor: int, bits: int) -> Any:
    """Undo a rotation to the left and, before that, the product that came behind it."""
    number = _times(F, _low32(F, number), pow(factor, -1, 2**32))
    return _rotated_less_1(F, number, 32 - bits) + long(F, 1)


def _rotated_less_1(F: Any, number: Any, bits: int) -> Any:
    """Rotate 32 bits to the left: multiply modulo 2^32 - 1, of 1..2^32 - 1 in place of 0 on."""
    return (F.shiftleft(number, bits) - long(F, 1)) % long(F, _MASK32)


def _times(F: Any, number: Any, factor: int) -> Any:
    return _low32(F, number * long(F, _signed(factor)))


def _low32(F: Any, number: Any) -> Any:
    return number.bitwiseAND(long(F, _MASK32))


def long(F: Any, number: int) -> Any:
    """Return a literal bigint."""
    return F.lit(number).cast("bigint")


def _signed(factor: int) -> int:
    """Return a factor for which no product with 32 bits is beyond 64."""
    return (factor + 2**31) % 2**32 - 2**31
