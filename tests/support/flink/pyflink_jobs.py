"""Jobs of a real PyFlink, which has a Python of its own: its dependencies are not those here."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PYTHON = os.environ.get("KEYGROUPS_TEST_PYFLINK", "")
"""The Python with PyFlink, which the step `pyflink` of `.ci/run` makes; "" for none."""

_JOB = Path(__file__).parent / "python" / "restored_job.py"
_SECONDS = 500  # A job's JVM may have little of the machine.


def restored_state(
    savepoint: Path,
    uids: Sequence[str],
    *,
    backend: str = "hashmap",
    parallelism: int = 2,
    max_parallelism: int = 128,
) -> dict[str, dict[int, Any]]:
    """Return the state of a job that goes on from a savepoint, by operator and key.

    Keys without state are left out; of timers and windows it is a list of all that fired.
    """
    numbers = (str(parallelism), str(max_parallelism))
    command = [PYTHON, str(_JOB), savepoint.as_uri(), backend, *numbers, *uids]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr
    state: dict[str, dict[int, Any]] = defaultdict(dict)
    for line in ended.stdout.splitlines():
        if not line.startswith("STATE "):
            continue
        uid, key, held = json.loads(line.removeprefix("STATE "))
        if isinstance(held, list):
            fired = state[uid].setdefault(key, [])
            fired.append(held)
            fired.sort()
        elif any(held.values()):
            state[uid][key] = held
    return dict(state)
