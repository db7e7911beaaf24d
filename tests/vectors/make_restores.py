"""Make restores-<version>.tar.xz: which changes of a job's types real Flink restores.

`python tests/vectors/make_restores.py JAR` runs jobs of the Flink that is beside its
distribution; with OLD_JAR after it the old job is of that Flink. It needs a JDK.
`../support/flink/evolved_jobs.py` has the changes. Ids and times differ from one time to the next.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from make_versions import FOLDER, nobody
from support.flink.evolved_jobs import EvolvedJobs, changes
from support.flink.flink_restores import BACKENDS
from support.flink.flink_sql import jdk_folder


def main(jar: str, old_jar: str | None = None) -> None:
    jdk = jdk_folder()
    assert jdk is not None, "needs a JDK"
    with TemporaryDirectory() as work:
        jobs = EvolvedJobs(jdk, Path(jar), Path(work, "new"))
        olds = jobs if old_jar is None else EvolvedJobs(jdk, Path(old_jar), Path(work, "old"))
        versions = dict.fromkeys([olds.version, jobs.version])
        paths = olds.all_saved(0), jobs.all_saved(1)
        asked = [*changes()]
        refusals = {backend: jobs.refusals(paths[0], backend, asked) for backend in BACKENDS}
        text = Path(work, "refusals.jsonl")
        with text.open("w", encoding="ascii") as lines:
            for name in (change.name for change in asked):
                reasons = {backend: found[name] for backend, found in refusals.items()}
                lines.write(json.dumps({"name": name, **reasons}) + "\n")
        with tarfile.open(FOLDER / f"restores-{'-'.join(versions)}.tar.xz", "w:xz") as archive:
            archive.add(text, text.name, filter=nobody)
            for side, path in zip(("old", "new"), paths):
                for file in sorted(Path(path.removeprefix("file:")).iterdir()):
                    archive.add(file, f"{side}/{file.name}", filter=nobody)


if __name__ == "__main__":
    main(*sys.argv[1:])
