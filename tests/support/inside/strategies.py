"""The values of keys that hypothesis draws."""

from keygroups.testing import _strategies
from keygroups.testing._strategies import SCALARS, values

__all__ = [
    "SCALARS",
    "_strategies",
    "values",
]
