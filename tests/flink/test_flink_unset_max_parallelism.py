"""The job that has to set its max parallelism: real Flink loses the state of one that does not.

Without it Flink takes over that of the savepoint, until an operator of the same chain that is not
in the savepoint sets it back to the default. A max parallelism set, or no chain, and all is found.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.flink.flink_restores import FlinkRestores, Restored, State, Task
from support.flink.written_savepoints import Case, Entry, KeyedOperator

from keygroups.types import LONG, STRING

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.20", "the API of its job"),
]

KEYS = 300
MAPS = 6  # operators without state, chained to the keyed one
DEFAULT = 128  # the max parallelism that Flink takes by default up to a parallelism of 85
STATES = [State("count", "VALUE", LONG)]
ENTRIES = [Entry("count", f"user-{number}", number) for number in range(KEYS)]
# The order of operators in a HashMap decides: with this uid the keyed one is not the last.
BY_USER = KeyedOperator("by-user-0", STRING, STATES, ENTRIES)


class Jobs:
    """Jobs that are restored from one savepoint, which is written here or by Flink itself."""

    def __init__(self, restores: FlinkRestores, folder: Path, max_parallelism: int) -> None:
        self._restores = restores
        self._path = folder / "written"
        self.max_parallelism = max_parallelism
        Case([BY_USER], max_parallelism, 2).write(self._path)

    def run(
        self, max_parallelism: int | None, parallelism: int = 1, is_chained: bool = True
    ) -> Restored:
        """Restore the job, with more operators in it than the savepoint has."""
        operators = [BY_USER.java()]
        return self._restores.restore(
            Task(
                *(self._path, operators, "hashmap", parallelism, max_parallelism),
                maps=MAPS,
                is_chained=is_chained,
            )
        )

    def use_flinks_own(self, folder: Path) -> None:
        """Have Flink itself take a savepoint, of the keyed operator alone, to go on with."""
        task = Task(self._path, [BY_USER.java()], "hashmap", 2, self.max_parallelism)
        own = self._restores.restore(task).path
        assert own is not None
        self._path = folder / "own"
        shutil.copytree(own.removeprefix("file:"), self._path)


@pytest.fixture(params=["written", "Flink's own"])
def jobs(request: pytest.FixtureRequest, restores: FlinkRestores, tmp_path: Path) -> Jobs:
    """Jobs of a max parallelism below the default, so that a key group takes as many bytes."""
    found = Jobs(restores, tmp_path, 100)
    if request.param != "written":
        found.use_flinks_own(tmp_path)
    return found


def count_found(restored: Restored) -> int:
    assert restored.refused is None
    return sum(row["value"] == {"long": _number(row["key"])} for row in restored.found("keyed"))


def _number(key: str) -> int:
    return int(key.removeprefix("user-"))


def test_state_is_lost_in_silence_where_max_parallelism_is_not_set(jobs: Jobs) -> None:
    restored = jobs.run(None)
    lost = KEYS - count_found(restored)
    print(f"of {KEYS} keys the job does not find {lost}")
    assert lost > KEYS / 2
    assert restored.max_parallelisms.popitem()[1] == DEFAULT


@pytest.mark.parametrize("parallelism", [2, 3])
def test_or_it_is_not_restored(jobs: Jobs, parallelism: int) -> None:
    refused = jobs.run(None, parallelism).refused
    assert refused is not None
    assert "key group" in refused.lower()


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_nothing_is_lost_where_max_parallelism_is_set(jobs: Jobs, parallelism: int) -> None:
    assert count_found(jobs.run(jobs.max_parallelism, parallelism)) == KEYS


def test_nothing_is_lost_without_the_chain(jobs: Jobs) -> None:
    assert count_found(jobs.run(None, is_chained=False)) == KEYS


def test_above_the_default_it_is_not_restored(restores: FlinkRestores, tmp_path: Path) -> None:
    jobs = Jobs(restores, tmp_path, 720)
    refused = jobs.run(None).refused
    assert refused is not None
    assert "Could not restore keyed state backend" in refused
    assert count_found(jobs.run(720)) == KEYS
