"""Jobs of real PyFlinks, each in a Python of its own: their dependencies are not those here."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

_PYTHONS = {
    "2.3.0": os.environ.get("KEYGROUPS_TEST_PYFLINK", ""),
    "1.20.5": os.environ.get("KEYGROUPS_TEST_PYFLINK_1_20", ""),
}
"""The Pythons with PyFlink, which the step `pyflink` of `.ci/run` makes; "" for none."""

_JOB = Path(__file__).parent / "python" / "restored_job.py"
_SECONDS = 900  # A job's JVM and Pythons may have little of the machine.


class PyFlink(NamedTuple):
    """A version of Flink, and one of its modes: "process", which is the default, or "thread"."""

    version: str
    mode: str = "process"

    def __str__(self) -> str:
        return f"{self.version}-{self.mode}"

    @property
    def in_thread(self) -> bool:
        return self.mode == "thread"

    def restored_state(
        self,
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
        state: dict[str, dict[int, Any]] = defaultdict(dict)
        lines = self._lines(
            "STATE ",
            savepoint=savepoint.as_uri(),
            uids=uids,
            backend=backend,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
        )
        for line in lines:
            uid, key, held = json.loads(line)
            if isinstance(held, list):
                fired = state[uid].setdefault(key, [])
                fired.append(held)
                fired.sort()
            elif any(held.values()):
                state[uid][key] = held
        return dict(state)

    def made_savepoint(
        self, folder: Path, uids: Sequence[str], *, backend: str, is_native: bool
    ) -> Path:
        """Return the savepoint that a job leaves in a folder, which is not there yet."""
        [line] = self._lines(
            "SAVEPOINT ",
            make=str(folder),
            uids=uids,
            backend=backend,
            is_native=is_native,
            parallelism=2,
            max_parallelism=128,
        )
        return Path(urlsplit(line).path)

    def _lines(self, start: str, **options: Any) -> list[str]:
        """Return the lines of a job that start so, without that."""
        python = Path(_PYTHONS[self.version])
        if not python.name:
            pytest.skip(f"`.ci/run pyflink` makes the Python of PyFlink {self.version}")
        [site] = (python.parent.parent / "lib").glob("python3.*/site-packages")
        ended = subprocess.run(
            [str(python), str(_JOB), json.dumps({"mode": self.mode, **options})],
            env={**os.environ, "PYTHONPATH": str(site)},  # Thread mode has no venv of its own.
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        lines = ended.stdout.splitlines()
        return [line.removeprefix(start) for line in lines if line.startswith(start)]
