"""What users hold of the adapter can be copied and pickled, as `core/test_pickling.py` has it."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil

import keygroups.spark
from keygroups.spark import KeyedState, ListState, MapState, ReducingState, ValueState
from keygroups.spark.state import GroupAggregate, StateAccesses
from keygroups.types import LONG, STRING

VALUES = [
    ValueState("n", LONG),
    ListState("tag", STRING),
    MapState("city", "n", STRING, LONG),
    ReducingState("total", LONG),
    StateAccesses(reads=40, writes=20),
]
# A DataFrame is of one session; a processor is pickled by Spark, with cloudpickle.
LEFT_OUT = {KeyedState, GroupAggregate}


def test_every_public_class_is_here() -> None:
    names = [info.name for info in pkgutil.iter_modules(keygroups.spark.__path__)]
    public = [f"keygroups.spark.{name}" for name in names if not name.startswith("_")]
    modules = map(importlib.import_module, ["keygroups.spark", *public])
    found = (getattr(module, name) for module in modules for name in module.__all__)
    classes = {cls for cls in found if inspect.isclass(cls) and "spark" in cls.__module__}
    assert classes - LEFT_OUT == set(map(type, VALUES))


def test_copies() -> None:
    for value in VALUES:
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert repr(pickle.loads(pickle.dumps(value, protocol))) == repr(value)
        for same in (copy.copy(value), copy.deepcopy(value)):
            assert repr(same) == repr(value)
