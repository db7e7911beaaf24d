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
from keygroups.state_keys import serializer_of
from keygroups.types import LIST, STRING
from support.registry import ARGUMENTS, OBJECTS, OF_OTHER_LIBRARIES, RECORDS, REGISTRY

MOST_STEPS = 6_000_000  # calls; the most that any of these needs is a tenth of it
METHODS = ("__and__", "__contains__", "__eq__", "__getitem__", "__hash__", "__iter__", "__str__")


class TooManySteps(BaseException):
    """A call takes too long."""


def public_callables() -> dict[str, Callable[..., Any]]:
    """Return the functions and classes of the core that users call, by name."""
    found = {}
    for info in pkgutil.iter_modules(keygroups.__path__):
        if info.name.startswith("_") or info.name == "spark":
            continue
        try:
            module = importlib.import_module(f"keygroups.{info.name}")
        except ModuleNotFoundError:  # an extra would bring it
            continue
        for name in dir(module):
            value = getattr(module, name)
            callable_ = inspect.isfunction(value) or inspect.isclass(value)
            if not callable_ or inspect.isabstract(value) or name in RECORDS:
                continue
            home = sys.modules[value.__module__]
            is_walked = home.__name__.count(".") == 1 and "._" not in home.__name__
            if home is module or not is_walked or name not in getattr(home, "__all__", ()):
                found[f"{info.name}.{name}"] = value  # under the name of where it is at home
    return found


def methods(make: Callable[[], Any]) -> dict[str, Callable[[], Callable[..., Any]]]:
    """Return makers of the public methods of fresh objects, by their names."""
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
CALLS |= {  # all else that a serializer has checks nothing
    f"Serializer.{name}": functools.partial(getattr, serializer_of(LIST(STRING)), name)
    for name in ("decode", "encode", "from_snapshot", "snapshot_bytes")
}


def parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(call).parameters.values())
    except ValueError:  # a method that is written in C
        return [inspect.Parameter("other", inspect.Parameter.POSITIONAL_ONLY)]


def valid_arguments(name: str) -> dict[str, list[Any]]:
    """Return the registered arguments of each parameter of a callable."""
    own = REGISTRY[name].arguments if name in REGISTRY else {}
    return {
        parameter.name: own.get(parameter.name) or ARGUMENTS.get(parameter.name, [])
        for parameter in parameters(CALLS[name]())
        if parameter.kind is not parameter.VAR_KEYWORD
    }


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
