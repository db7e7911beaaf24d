"""Names that have gone, which still lead to what has another name now."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping


def old_names(module: str, classes: Mapping[str, type]) -> Callable[[str], type]:
    """Return a `__getattr__` for a module, with its classes by their old names.

    It warns of each with a DeprecationWarning, and raises AttributeError for all other names.
    """

    def __getattr__(name: str) -> type:
        cls = classes.get(name)
        if cls is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is {cls.__name__} now: the old name goes in the next minor version",
            DeprecationWarning,
            stacklevel=2,
        )
        return cls

    return __getattr__
