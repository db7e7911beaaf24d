"""Every public callable of the core, found by a walk, so what is new is in at once."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keygroups
from keygroups import KeyGroupLoad, KeyGroupRange, LocalKeyBy, RescalePlan, partitioners
from keygroups.types import INT, STRING, TUPLE

# What functions return; nobody makes one by hand, and making one checks nothing.
RECORDS = {
    "HotKey",
    "HotSubtask",
    "KeyTrace",
    "LogicalType",
    "ModuloComparison",
    "PointwiseEdge",
    "Recommendation",
    "Recommendations",
    "RescalePiece",
    "RoutingCandidate",
    "RoutingInference",
    "SkewReport",
    "SubtaskRow",
}
# What they do is pandas' and Matplotlib's, where these are installed.
OF_OTHER_LIBRARIES = {"plot", "plot_key_groups", "to_pandas"}
MOST_STEPS = 6_000_000  # calls; the most that any of these needs is a tenth of it

# Objects whose methods are driven, from subtask keys to key types.
OBJECTS: list[Callable[[], Any]] = [
    lambda: KeyGroupLoad(8, [1] * 8),
    lambda: KeyGroupRange(43, 85),
    lambda: RescalePlan(8, 3, 4),
    lambda: LocalKeyBy(3, max),
    lambda: keygroups.SubtaskKeySelector(8, 4),
    lambda: keygroups.trace_key("a", 8, 4),
    lambda: partitioners.RebalancePartitioner(4, 0),
    lambda: partitioners.RescalePartitioner(4),
    lambda: partitioners.ShufflePartitioner(4, lambda high: 0),
    lambda: partitioners.CustomPartitionerWrapper(4, lambda key, parallelism: key),
    lambda: partitioners.KeyGroupStreamPartitioner(4, 8),
    lambda: TUPLE(INT, STRING),
]
METHODS = ("__and__", "__contains__", "__eq__", "__getitem__", "__hash__", "__iter__", "__str__")


class TooManySteps(BaseException):
    """A call takes too long."""


def public_callables() -> dict[str, Callable[..., Any]]:
    """Return the functions and classes of the core that users call, by name."""
    found = {}
    for info in pkgutil.iter_modules(keygroups.__path__):
        if info.name.startswith("_") or info.ispkg:
            continue
        module = importlib.import_module(f"keygroups.{info.name}")
        for name in module.__all__:
            value = getattr(module, name)
            callable_ = inspect.isfunction(value) or inspect.isclass(value)
            if callable_ and not inspect.isabstract(value) and name not in RECORDS:
                found[f"{info.name}.{name}"] = value
    return found


def methods(make: Callable[[], Any]) -> dict[str, Callable[[], Callable[..., Any]]]:
    """Return what makes each public method of a fresh object, by name."""
    cls = type(make())
    names = [
        name
        for name in dir(cls)
        if not name.startswith("_")
        and callable(getattr(cls, name))
        and name not in OF_OTHER_LIBRARIES
    ]
    own = [name for name in METHODS if getattr(cls, name, None) is not getattr(object, name, None)]
    return {
        f"{cls.__name__}.{name}": functools.partial(lambda name: getattr(make(), name), name)
        for name in [*names, *own]
    }


CALLS: dict[str, Callable[[], Callable[..., Any]]] = {
    name: functools.partial(lambda value: value, value)
    for name, value in public_callables().items()
    if not issubclass(value if isinstance(value, type) else type(value), Exception)
}
for _make in OBJECTS:
    CALLS |= methods(_make)


def parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(call).parameters.values())
    except ValueError:  # a method that is written in C
        return [inspect.Parameter("other", inspect.Parameter.POSITIONAL_ONLY)]


@contextmanager
def bounded_steps() -> Iterator[None]:
    """Stop what takes too many calls."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS:
            sys.setprofile(None)
            raise TooManySteps

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
