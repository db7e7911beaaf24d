"""The example examples/pyflink_state.py, on state that PyFlink wrote and on its own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from support.bytes.real_savepoints import corpus

from keygroups.savepoint import SavepointWriter, read_savepoint

pytestmark = pytest.mark.example

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

sys.path.insert(0, str(EXAMPLES))
pyflink_state = importlib.import_module("pyflink_state")
sys.path.pop(0)


def test_without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    pyflink_state.main([])
    before, after = capsys.readouterr().out.split("Mended, without user 2")
    assert "user 2: 32 clicks, 2026-10-31: 12, 2026-11-01: 20; saw /, /shop/2" in before
    assert "user 3: 23 clicks, 2026-10-31: 13, 2026-11-01: 10; saw /, /shop/3" in after
    assert "user 2" not in after
    assert "-py job.py" in after


def test_state_that_pyflink_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its keys have "m0" in the map, of which the first of three elements has 3."""
    point = corpus("pyflink") / "2.3.0-states-s1" / "savepoint"
    with SavepointWriter.from_existing_savepoint(point, tmp_path / "old") as editor:
        operator = editor.operator("kinds")
        for old, new in (("value", "count"), ("list", "pages"), ("map", "by-day")):
            operator.rename_state(f"python-state-{old}", f"python-state-{new}")
    monkeypatch.setattr(pyflink_state, "UID", "kinds")
    monkeypatch.setattr(pyflink_state, "COUNTED_TWICE", "m0")
    output = tmp_path / "new"
    pyflink_state.main(["--savepoint", str(tmp_path / "old"), "--output", str(output)])
    assert "user 1: 6 clicks, m0: 3, m1: 1, m2: 2; saw n0" in capsys.readouterr().out
    declared = (pyflink_state.KEY_TYPE, pyflink_state.STATES)
    users = read_savepoint(output).operator("kinds").as_pyflink(*declared)
    assert {entry.key for entry in users.entries(["count"])} == {0, 1, 3, 4}
    assert users.get(1)["count"] == 5
    assert users.get(1)["by-day"] == {"m0": 1, "m1": 1, "m2": 2}


def test_what_the_user_can_put_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        pyflink_state.main(["--savepoint", str(tmp_path / "none")])
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("pyflink_state: ")
    assert error.count("\n") == 1
