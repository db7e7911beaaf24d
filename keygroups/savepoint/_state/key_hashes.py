"""The hash of a key, by its serializer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keygroups._checks import INT_MAX, INT_MIN, check_int
from keygroups._serializers.base import Serializer
from keygroups.hashing import hasher_of


def has_hash(serializer: Serializer) -> bool:
    """Return whether the hash of keys is known: by their type, or by a class of the caller's."""
    return serializer.key_type is not None or serializer.key_hash is not None


def key_hasher(serializer: Serializer) -> Callable[[Any], int] | None:
    """Return the hasher of a serializer's keys, None where their hash is not known.

    That raises KeyGroupsError for what is no key, and what the caller's own `key_hash` raises.
    """
    key_type, key_hash = serializer.key_type, serializer.key_hash
    if key_type is not None:
        return hasher_of(key_type)
    if key_hash is None:
        return None
    name = f"key_hash of {serializer}"
    return lambda key: check_int(name, key_hash(key), INT_MIN, INT_MAX)
