"""Every public callable of the core, driven with objects that no caller should pass.

Found by walking the package, so what is new is in at once. Whatever the arguments, there is a
result or a KeyGroupsError, after a bounded number of steps. What the caller's own object raises
when it is compared, hashed, counted or called may come through; what its repr raises never.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hostile_values import HOSTILE, EndlessRead, OwnError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import keygroups
from keygroups import (
    KeyGroupLoad,
    KeyGroupRange,
    KeyGroupsError,
    LocalKeyBy,
    RescalePlan,
    partitioners,
    types,
)
from keygroups.types import INT, LONG, STRING, TUPLE

# What functions return; nobody makes one by hand, and making one checks nothing.
RECORDS = {
    "KeyTrace",
    "LogicalType",
    "ModuloComparison",
    "PointwiseEdge",
    "Recommendation",
    "RescalePiece",
}
# Read to their end, however long that takes, and held no longer than needed.
STREAMS = {"keys", "entries", "names"}
MOST_STEPS = 6_000_000  # calls; the most that any of these needs is a tenth of it

VALID: dict[str, list[Any]] = {
    "batch_size": [3],
    "code": [5],
    "combine": [max],
    "element": [INT, STRING],
    "end_key_group": [85],
    "entries": [[("a", 1)]],
    "explain_text": ["== Optimized Execution Plan ==\nCalc(select=[a])\n"],
    "fields": [INT, STRING, "BIGINT"],
    "high": [4],
    "index": [0, 1],
    "key": [5, "a", (1, "a"), INT],
    "key_group": [50],
    "key_group_id": [3],
    "key_groups": [[1, 2]],
    "key_hash": [-5],
    "key_type": [None, INT, LONG, STRING, TUPLE(INT, STRING), types.SQL_ROW("BIGINT")],
    "keys": [[1, 2, 3], KeyGroupLoad(8, [1] * 8)],
    "kind": ["+I", "-U"],
    "load": [None, KeyGroupLoad(8, [1] * 8)],
    "low": [2],
    "mapper": ["RANGE", "FULL", "ROUND_ROBIN"],
    "max_parallelism": [8, 128],
    "name": ["INT"],
    "names": [None, ["a", "b"]],
    "next_int": [lambda high: 0],
    "number_of_channels": [4],
    "old_lists": [[[1, 2], [3], None]],
    "other": [KeyGroupRange(0, 3)],
    "partitioner": [lambda key, parallelism: 0],
    "prefix": ["", "a"],
    "record": ["a", 5],
    "scramble": [abs],
    "separator": ["#"],
    "start": [0, 2],
    "start_key_group": [43],
    "states": [{"s": ("UNION", [[1], [2], [3]])}],
    "subtask": [2],
    "template": [None, (..., "a")],
    "text": ["ROW<a INT, b ARRAY<DECIMAL(38, 10)>>"],
    "value": [5, INT, STRING],
    "value_type": [None, INT],
    "weights": [[1] * 8, {3: 1.5}],
    "zone": ["UTC", "Europe/Berlin"],
    "n": [1, 2],
    **{
        f"{kind}parallelism": [3, 4]
        for kind in ("", "old_", "new_", "operator_", "upstream_", "downstream_")
    },
    "savepoint_max_parallelism": [8],
    **{index: [1] for index in ("operator_index", "old_subtask", "new_subtask")},
}
"""Arguments by the name of the parameter that each callable takes in stride."""

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
        name for name in dir(cls) if not name.startswith("_") and callable(getattr(cls, name))
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


def drive(name: str, arguments: Mapping[str, Any], more: list[Any]) -> None:
    """Call, and print what comes of it."""
    call = CALLS[name]()
    positional = [
        arguments[parameter.name]
        for parameter in parameters(call)
        if parameter.name in arguments
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    named = {
        parameter.name: arguments[parameter.name]
        for parameter in parameters(call)
        if parameter.name in arguments and parameter.kind is parameter.KEYWORD_ONLY
    }
    try:
        with bounded_steps():
            result = call(*positional, *more, **named)
            if type(result).__module__.startswith("keygroups"):
                str(result)
    except KeyGroupsError as error:
        message = str(error)
    except OwnError:
        return
    except IndexError:
        message = name
        if name != "KeyGroupRange.__getitem__":
            raise
    except (EndlessRead, TooManySteps):
        if not STREAMS & arguments.keys():
            raise
        return
    else:
        return
    assert 0 < len(message) < 5_000
    assert "\n" not in message


HOSTILE_VALUES = st.sampled_from(HOSTILE).map(lambda pair: pair[1]())


@pytest.mark.parametrize("name", sorted(CALLS))
def test_hostile_arguments(name: str) -> None:
    """Each argument is hostile in turn, with each hostile value; then several at a time."""
    taken = parameters(CALLS[name]())
    variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in taken)
    named = [p for p in taken if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for parameter in named:
        assert parameter.name in VALID, f"give a valid {parameter.name} to VALID"
        for _, make in HOSTILE:
            arguments = {other.name: VALID[other.name][0] for other in named}
            drive(name, arguments | {parameter.name: make()}, [])
    if variadic:
        arguments = {other.name: VALID[other.name][0] for other in named}
        for _, make in HOSTILE:
            drive(name, arguments, [make()])


@pytest.mark.parametrize("name", sorted(CALLS))
@given(data=st.data())
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
def test_mixed_arguments(name: str, data: st.DataObject) -> None:
    taken = parameters(CALLS[name]())
    arguments = {}
    more: list[Any] = []
    for parameter in taken:
        if parameter.kind is parameter.VAR_POSITIONAL:
            valid = st.sampled_from(VALID[parameter.name])
            more = data.draw(st.lists(st.one_of(valid, HOSTILE_VALUES), max_size=4))
        elif parameter.kind is not parameter.VAR_KEYWORD:
            valid = st.sampled_from(VALID[parameter.name])
            arguments[parameter.name] = data.draw(st.one_of(valid, HOSTILE_VALUES))
    drive(name, arguments, more)
