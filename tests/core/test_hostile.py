"""Every public callable of the core, driven with objects that no caller should pass.

Whatever the arguments, there is a result or a KeyGroupsError, after a bounded number of steps.
What the caller's own object raises when it is compared, hashed, counted or called may come
through; what its repr raises never.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hostile_values
import pytest
from hostile_values import HOSTILE, EndlessRead, OwnError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from public_calls import (
    CALLS,
    NEW_STATES,
    NewPath,
    TooManySteps,
    bounded_steps,
    parameters,
    savepoint_folder,
    written_file,
    written_folder,
)

from keygroups import (
    KeyGroupLoad,
    KeyGroupRange,
    KeyGroupsError,
    RescalePlan,
    types,
)
from keygroups.errors import RestoreWarning
from keygroups.savepoint import read_savepoint
from keygroups.state_keys import VOID_NAMESPACE, CompositeKeySerializer
from keygroups.types import INT, LONG, STRING, TUPLE

# Read to their end, however long that takes, and held no longer than needed.
STREAMS = {"keys", "entries", "names", "observed"}

VALID: dict[str, list[Any]] = {
    "allow": [(), ["/a", "s3://b"]],
    "allow_any_last_access": [True, False],
    "arguments": [["default", "24"]],
    "at_least": [1, 3],
    "batch_size": [3],
    "code": [5],
    "data": [CompositeKeySerializer(128, INT, STRING, STRING).serialize(5, "a", "b"), b""],
    "combine": [max],
    "element": [INT, STRING],
    "end_key_group": [85],
    "entries": [[("a", 1)]],
    "explain_text": ["== Optimized Execution Plan ==\nCalc(select=[a])\n"],
    "fields": [INT, STRING, "BIGINT"],
    "has_ttl": [True, False],
    "high": [4],
    "index": [0, 1],
    "job_id": [None, "0" * 32],
    "key": [5, "a", (1, "a"), INT],
    "key_group": [50],
    "key_group_id": [3],
    "key_groups": [[1, 2]],
    "key_hash": [-5],
    "key_type": [None, INT, LONG, STRING, TUPLE(INT, STRING), types.SQL_ROW("BIGINT")],
    "key_types": [None, [INT]],
    "keys": [[1, 2, 3], KeyGroupLoad(8, [1] * 8)],
    "kind": ["+I", "-U"],
    "last_access": [None, 1_700_000_000_000],
    "limit": [40, None],
    "load": [None, KeyGroupLoad(8, [1] * 8)],
    "low": [2],
    "moved": [None, {"/a": "/b"}],
    "mapper": ["RANGE", "FULL", "ROUND_ROBIN"],
    "max_imbalance": [1.5],
    "max_parallelism": [8, 128],
    "name": ["INT"],
    "names": [None, ["a", "b"]],
    "namespace": ["a", None],
    "namespace_type": [STRING, VOID_NAMESPACE],
    "next_int": [lambda high: 0],
    "nulls": ["raise", "mask"],
    "number_of_channels": [4],
    "observed": [[(number, number % 3) for number in range(20)]],
    "old_lists": [[[1, 2], [3], None]],
    "operator": ["by-int"],
    "operators": [["by-int"], None],
    "other": [KeyGroupRange(0, 3)],
    "output": [NewPath()],
    "partitioner": [lambda key, parallelism: 0],
    "path": [savepoint_folder()],
    "plan": [RescalePlan(8, 3, 4)],
    "prefix": ["", "a"],
    "record": ["a", 5],
    "savepoint": [read_savepoint(savepoint_folder())],
    "scramble": [abs],
    "separator": ["#"],
    "start": [0, 2],
    "start_key_group": [43],
    "state": ["cities", "count", "tags"],
    "states": [{"s": ("UNION", [[1], [2], [3]])}, ["count"], None],
    "subtask": [2],
    "template": [None, (..., "a")],
    "text": ["ROW<a INT, b ARRAY<DECIMAL(38, 10)>>"],
    "top": [3],
    "user_key": ["b", None],
    "user_key_type": [STRING, None],
    "timeout": [5],
    "uid": ["by-user"],
    "url": ["http://127.0.0.1:9"],
    "value": [5, INT, STRING],
    "value_type": [INT, None],
    "vertex": ["by-user"],
    "weights": [[1] * 8, {3: 1.5}],
    "written": [written_file()],
    "zone": ["UTC", "Europe/Berlin"],
    "n": [1, 2],
    **{
        f"{kind}parallelism": [3, 4]
        for kind in ("", "old_", "new_", "operator_", "upstream_", "downstream_")
    },
    "new_max_parallelism": [256],
    "savepoint_max_parallelism": [8],
    **{index: [1] for index in ("operator_index", "old_subtask", "new_subtask")},
}
"""Arguments by the name of the parameter that each callable takes in stride."""
OF_CALL: dict[str, dict[str, list[Any]]] = {
    "SavepointWriter.add_operator": {"key_type": [INT, STRING], "states": [NEW_STATES]},
    "savepoint.SavepointWriter": {"path": [NewPath()]},
    **{
        f"savepoint.{name}": {"savepoint": [written_folder()]}
        for name in ("change_max_parallelism", "convert_to_canonical")
    },
}
"""And others of a callable, where it takes those of its own."""


try:
    import numpy as np
except ModuleNotFoundError:
    ARRAYS: dict[str, list[Any]] = {}
else:
    numbers, texts = np.arange(3), np.array(["a", "b", None], dtype=object)
    ARRAYS = {
        **{
            name: [numbers, texts, [numbers, texts], np.zeros(2, bool)] for name in ("key", "keys")
        },
        **{name: [numbers] for name in ("key_hash", "key_group_id")},
    }
"""And of `keygroups.arrays`, where a key is an array of keys."""


def choices(name: str, parameter: inspect.Parameter) -> list[Any]:
    of_arrays = name.startswith("arrays.") and parameter.name in ARRAYS
    if parameter.name in OF_CALL.get(name, {}):
        return OF_CALL[name][parameter.name]
    return (ARRAYS if of_arrays else VALID)[parameter.name]


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
    except (OwnError, RestoreWarning):
        return
    except AssertionError:
        if not name.startswith("testing.assert_"):  # whose answer it is
            raise
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


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be where it does not matter which folders are made."""
    monkeypatch.chdir(tmp_path)


HOSTILE_VALUES = st.sampled_from(HOSTILE).map(lambda pair: pair[1]())


@pytest.mark.parametrize("name", sorted(CALLS))
def test_hostile_arguments(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each argument is hostile in turn, with each hostile value; then several at a time."""
    taken = parameters(CALLS[name]())
    variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in taken)
    named = [p for p in taken if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if STREAMS & {parameter.name for parameter in named}:  # no bound stops the reading of these
        monkeypatch.setattr(hostile_values, "MOST_READ", 4_000)
    for parameter in named:
        assert parameter.name in VALID, f"give a valid {parameter.name} to VALID"
        for _, make in HOSTILE:
            arguments = {other.name: choices(name, other)[0] for other in named}
            drive(name, arguments | {parameter.name: make()}, [])
    if variadic:
        arguments = {other.name: choices(name, other)[0] for other in named}
        for _, make in HOSTILE:
            drive(name, arguments, [make()])


EXAMPLES = [5, pytest.param(30, marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("examples", EXAMPLES)
def test_mixed_arguments(name: str, examples: int) -> None:
    @given(data=st.data())
    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow], database=None)
    def drive_mixed(data: st.DataObject) -> None:
        drive_drawn(name, data)

    drive_mixed()


def drive_drawn(name: str, data: st.DataObject) -> None:
    taken = parameters(CALLS[name]())
    arguments = {}
    more: list[Any] = []
    for parameter in taken:
        if parameter.kind is parameter.VAR_POSITIONAL:
            valid = st.sampled_from(choices(name, parameter))
            more = data.draw(st.lists(st.one_of(valid, HOSTILE_VALUES), max_size=4))
        elif parameter.kind is not parameter.VAR_KEYWORD:
            valid = st.sampled_from(choices(name, parameter))
            arguments[parameter.name] = data.draw(st.one_of(valid, HOSTILE_VALUES))
    drive(name, arguments, more)
