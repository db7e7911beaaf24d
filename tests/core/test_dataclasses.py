"""Dataclasses of the core cannot be changed: they are keys of dicts, and are sent to executors."""

from __future__ import annotations

import pkgutil
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest

import keygroups

# Those that are filled as they are read: a graph, and objects of Java that refer to one another.
CHANGED = {"JavaObject", "_ClassDescription", "Plan", "PlanNode"}
WITHOUT_EQ = {"Bitmap", "PlanNode"}  # One has its own, the other is itself alone.
SKIPPED = ("keygroups.spark", "keygroups.__main__")


def dataclasses_of_the_core() -> dict[str, Any]:
    found = {}
    for info in pkgutil.walk_packages(keygroups.__path__, "keygroups."):
        if info.name.startswith(SKIPPED):
            continue
        with suppress(ModuleNotFoundError):  # The module is of an extra that is not here.
            for name, value in vars(import_module(info.name)).items():
                if getattr(value, "__module__", "") == info.name and "__dataclass_params__" in (
                    vars(value) if isinstance(value, type) else ()
                ):
                    found[name] = value
    return found


def test_dataclasses_of_the_core() -> None:
    pytest.importorskip("pyarrow")
    params = {name: made.__dataclass_params__ for name, made in dataclasses_of_the_core().items()}
    assert len(params) > 100
    assert {name for name, param in params.items() if not param.frozen} == CHANGED
    assert {name for name, param in params.items() if not param.eq} == WITHOUT_EQ
    assert not [name for name, param in params.items() if param.order or param.unsafe_hash]
