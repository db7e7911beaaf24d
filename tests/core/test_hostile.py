"""Every public callable of the core, driven with objects that no caller should pass.

Whatever the arguments, there is a result or a KeyGroupsError, after a bounded number of steps.
What the caller's own object raises when it is compared, hashed, counted or called may come
through; what its repr raises never.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import hostile_values
from support.hostile_values import HOSTILE, EndlessRead, OwnError
from support.public_calls import CALLS, TooManySteps, bounded_steps, parameters, valid_arguments

from keygroups import KeyGroupsError
from keygroups.errors import RestoreWarning

# Read to their end, however long that takes, and held no longer than needed: those of operator
# state, `elements`, as bytes until the savepoint is whole.
STREAMS = {"keys", "elements", "entries", "names", "observed"}


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


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_hostile_arguments(name: str, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each argument is hostile in turn, with each hostile value or, of nine, one each."""
    valid = valid_arguments(name)
    variadic = [p.name for p in parameters(CALLS[name]()) if p.kind is p.VAR_POSITIONAL]
    first = {other: values[0] for other, values in valid.items() if other not in variadic}
    if STREAMS & first.keys():  # no bound stops the reading of these
        monkeypatch.setattr(hostile_values, "MOST_READ", 4_000)
    for number, (_, make) in enumerate(HOSTILE):
        for place, parameter in enumerate(first):
            if (number + place) % every == 0:
                drive(name, first | {parameter: make()}, [])
        if variadic and number % every == 0:
            drive(name, first, [make()])


EXAMPLES = [1, pytest.param(30, marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("examples", EXAMPLES)
def test_mixed_arguments(name: str, examples: int) -> None:
    @given(data=st.data())
    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow], database=None)
    def drive_mixed(data: st.DataObject) -> None:
        drive_drawn(name, data)

    drive_mixed()


def drive_drawn(name: str, data: st.DataObject) -> None:
    valid = valid_arguments(name)
    arguments = {}
    more: list[Any] = []
    for parameter in parameters(CALLS[name]()):
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        values = st.one_of(st.sampled_from(valid[parameter.name]), HOSTILE_VALUES)
        if parameter.kind is parameter.VAR_POSITIONAL:
            more = data.draw(st.lists(values, max_size=4))
        else:
            arguments[parameter.name] = data.draw(values)
    drive(name, arguments, more)
