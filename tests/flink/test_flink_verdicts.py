"""Real Flink says again what the vectors have: verdicts about serializers, and restored changes.

Flink's serializers say it themselves, and a job restores its state, or is refused. The vectors
are of the versions here; `../core/test_compatibility.py` and `test_restores_of_flink.py` compare.
"""

from __future__ import annotations

import gzip
import json

import pytest
from support.bytes.real_savepoints import corpus
from support.flink.evolved_jobs import EvolvedJobs, changes
from support.flink.evolved_types import verdicts
from support.flink.flink_oracle import flink_jar, flink_version
from support.flink.flink_sql import jdk_folder
from support.golden import FOLDER

pytestmark = [pytest.mark.flink, pytest.mark.flink_since("1.20", "the API of its jobs")]


def recorded(name: str, version: str) -> bytes:
    """Return the file of a version, if it is one that was recorded."""
    file = FOLDER / name.format(version)
    if not file.exists():
        pytest.skip(f"nothing was recorded of Flink {version}")
    return file.read_bytes()


def test_flink_still_gives_these_verdicts() -> None:
    jar = flink_jar()
    if jar is None or jdk_folder() is None:
        pytest.skip("needs Flink's jars and a JDK")
    data = gzip.decompress(recorded("verdicts-{}.jsonl.gz", flink_version(jar)))
    assert verdicts(jar) == [*map(json.loads, data.splitlines()[1:])]


@pytest.fixture(scope="module")
def old(evolved_jobs: EvolvedJobs) -> str:
    """The savepoint of the old job."""
    return evolved_jobs.all_saved(0)


@pytest.mark.parametrize(
    ("backend", "is_alone"),
    [
        ("rocksdb", False),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (("rocksdb", True), ("hashmap", False), ("hashmap", True))
        ),
    ],
)
def test_flink_still_restores_these_changes(
    evolved_jobs: EvolvedJobs, old: str, backend: str, is_alone: bool
) -> None:
    recorded("restores-{}.tar.xz", evolved_jobs.version)
    file = corpus(f"restores-{evolved_jobs.version}") / "refusals.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    known = {line["name"]: line[backend] for line in lines}
    asked = [change for change in changes() if change.is_alone == is_alone]
    found = evolved_jobs.refusals(old, backend, asked)
    assert found == {change.name: known[change.name] for change in asked}
