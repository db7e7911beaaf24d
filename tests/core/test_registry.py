"""Every public callable of the core is registered for the tests that go over all of them."""

from __future__ import annotations

from support.public_calls import CALLS, public_callables, valid_arguments
from support.registry import REGISTRY

PLACE = "tests/support/registry.py"


def test_every_public_callable_is_registered() -> None:
    assert len(public_callables()) > 70  # the walk finds them
    missing, gone = CALLS.keys() - REGISTRY.keys(), REGISTRY.keys() - CALLS.keys()
    assert not missing, f"register these in REGISTRY of {PLACE}, or in RECORDS: {sorted(missing)}"
    assert not gone, f"these in REGISTRY of {PLACE} are no more: {sorted(gone)}"


def test_every_cost_grows_or_is_constant_for_a_reason() -> None:
    both = [
        name
        for name, registered in REGISTRY.items()
        if bool(registered.constant) == bool(registered.grows or registered.more)
    ]
    assert not both, f"give these in REGISTRY of {PLACE} what grows, or why nothing does: {both}"


def test_every_parameter_has_valid_arguments() -> None:
    missing = [
        f"{parameter} of {name}"
        for name in CALLS
        for parameter, valid in valid_arguments(name).items()
        if not valid
    ]
    assert not missing, f"give these to ARGUMENTS of {PLACE}: {missing}"
