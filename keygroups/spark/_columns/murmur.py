"""Murmur3 of 4-byte words in arithmetic on bigints, as far as Spark's hash() cannot do it.

hash() closes the hash of a value before it goes on to the next, and so cannot hash a few words as
one value. Here states and words are unsigned numbers of 32 bits. No product or sum is beyond 64
bits, so ANSI mode makes no difference. Operands are written once each: an expression that used
its state twice would double with each round. Every literal is a bigint, as Spark's analyser takes
one more pass for each level of casts.

A round over a word is
`state = rotl(state ^ rotl(word * FIRST, 15) * SECOND, 13) * 5 + PLUS`: of state 0 and word 1 it
xors in 0xC3539A5D, and the state is 0x26CF0576.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MASK32 = 0xFFFFFFFF
_FIRST, _SECOND, _PLUS = 0xCC9E2D51, 0x1B873593, 0xE6546B64


def state_after(F: Any, words: Sequence[Any], state: Any) -> Any:
    """Return the state after rounds over words; None is a word of 0, which xors in nothing.

    Of both states the low 32 bits count.
    """
    for word in words:
        if word is not None:
            scrambled = _rotated_less_1(F, _times(F, word, _FIRST), 15)
            state = state.bitwiseXOR(scrambled * long(F, _SECOND) + long(F, _SECOND))
        state = _rotated_less_1(F, _low32(F, state), 13) * long(F, 5) + long(F, 5 + _PLUS)
    return state


def last_word(F: Any, state: Any, size: int) -> Any:
    """Return the word whose murmur3 from a state of 0 is that of a state closed with a size.

    Closing is `state ^= size; state ^= state >> 16` and more such steps: each uses the state
    twice, and written here it would be eight times as long. So the last round is taken back, and
    Spark's hash() of the word that is found does that round and the closing, with its own size of
    4 bytes. After words 1 and 2 from state 42 and with size 8, the word is 0x7D241773: its
    murmur3 from 0 is that of the 8 bytes from 42, -1952210761. The low 32 bits count.
    """
    mixed = state.bitwiseXOR(long(F, size ^ 4)) - long(F, _PLUS)
    return word_of(F, _unrotated(F, mixed, 5, 13))


def word_of(F: Any, scrambled: Any) -> Any:
    """Return the word that a round xors into the state as `scrambled`: 1 for 0xC3539A5D.

    Of both the low 32 bits count.
    """
    return _unrotated(F, scrambled, _SECOND, 15) * long(F, _signed(pow(_FIRST, -1, 2**32)))


def _unrotated(F: Any, number: Any, factor: int, bits: int) -> Any:
    """Undo a product with `factor`, and the rotation to the left that came before it."""
    number = _times(F, _low32(F, number), pow(factor, -1, 2**32))
    return _rotated_less_1(F, number, 32 - bits) + long(F, 1)


def _rotated_less_1(F: Any, number: Any, bits: int) -> Any:
    """Return a number of 32 bits rotated to the left, minus 1.

    Shifts would use the number twice. It is rotated by a product with 2^bits modulo 2^32 - 1, too,
    but a remainder is never 2^32 - 1: with 1 less, all values fit. 0x80000001 by 13 is 0x3000, and
    0x2FFF is returned; 0 gives -1.
    """
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
