"""Flink SQL in a JVM of its own: the programs in `java/`, compiled when first needed."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.flink.flink_oracle import flink_version, version_numbers

JAVA_FOLDER = Path(__file__).with_name("java")
# As in the configuration that Flink comes with: Kryo wants it, and old versions more of it.
OPENED_PACKAGES = ("java.lang", "java.time", "java.util")


def jdk_folder() -> Path | None:
    """Return the folder of the JDK's programs, or None where there is only a JRE or nothing."""
    home = os.environ.get("JAVA_HOME")
    javac = shutil.which("javac", path=str(Path(home, "bin")) if home else None)
    return Path(javac).parent if javac else None


def java_sources(lib: Path) -> str:
    """Return the source path of the programs in `java/`, for the Flink whose jars are in `lib`."""
    (dist,) = lib.glob("flink-dist*.jar")
    is_old = version_numbers(flink_version(dist)) < (1, 20)
    return os.pathsep.join(
        map(str, (JAVA_FOLDER, JAVA_FOLDER / ("before-1.20" if is_old else "since-1.20")))
    )


class FlinkSql:
    """What Flink's table runtime answers, with the jars in `lib` and files put in `folder`."""

    def __init__(self, jdk: Path, lib: Path, folder: Path) -> None:
        self._jdk, self._folder = jdk, folder
        self._sources = java_sources(lib)
        python_jars = map(str, lib.parent.glob("opt/flink-python-*.jar"))
        self._class_path = os.pathsep.join([str(folder), str(lib / "*"), *python_jars])

    def row_hashes(self, types: Sequence[str], rows: Iterable[Sequence[object]]) -> list[int]:
        """Return the hash of each row of fields of these SQL types.

        Flink's BinaryRowWriter writes the row, and so does the key selector that the planner
        generates; both must write the same.
        """
        fields = ", ".join(f"f{index} {name}" for index, name in enumerate(types))
        lines = "".join(f"{json.dumps(row, default=_text)}\n" for row in rows)
        return list(map(int, self._run("SqlRowHashes", f"ROW<{fields}>", passed=lines).split()))

    def subtask_reports(self, task: dict[str, object]) -> list[dict[str, Any]]:
        """Run jobs in a local cluster, and return what `java/SubtaskReports.java` says of each."""
        text = self._run("SubtaskReports", passed=json.dumps(task))
        jobs: list[dict[str, Any]] = json.loads(text)
        return jobs

    def explain_texts(self, task: dict[str, object]) -> list[dict[str, Any]]:
        """Return the answer of `java/ExplainTexts.java` for each job of a task."""
        services = self._folder / "META-INF" / "services"
        services.mkdir(parents=True, exist_ok=True)
        factory = services / "org.apache.flink.table.factories.Factory"
        factory.write_text("ExplainTexts$Factory\n", encoding="ascii")
        jobs: list[dict[str, Any]] = json.loads(self._run("ExplainTexts", passed=json.dumps(task)))
        return jobs

    def savepoints(self, slots: int, task: dict[str, object]) -> dict[str, dict[str, Any]]:
        """Run jobs in a local cluster, and return what `java/Savepoints.java` says of each."""
        text = self._run("Savepoints", str(slots), passed=json.dumps(task))
        jobs: dict[str, dict[str, Any]] = json.loads(text)
        return jobs

    def async_states(self, task: dict[str, object]) -> dict[str, str]:
        """Run a job in a local cluster; return the points that `java/AsyncStates.java` took."""
        text = self._run("AsyncStates", "8", passed=f"{json.dumps(task)}\n")
        points: dict[str, str] = json.loads(text)
        return points

    def matrix(self, tasks: Iterable[dict[str, object]], is_async: bool) -> list[dict[str, str]]:
        """Run jobs in a local cluster, and return what `java/Matrix.java` says of each."""
        passed = "".join(f"{json.dumps(task)}\n" for task in tasks)
        program = "AsyncMatrix" if is_async else "Matrix"
        return [*map(json.loads, self._run(program, "8", passed=passed).splitlines())]

    def jobs(self, tasks: Iterable[dict[str, object]]) -> list[dict[str, Any]]:
        """Run jobs in a local cluster, and return what `java/SqlJobs.java` says of each."""
        return self._answers("SqlJobs", tasks)

    def partition_jobs(self, tasks: Iterable[dict[str, object]]) -> list[dict[str, Any]]:
        """Run jobs in a local cluster, and return what `java/PartitionJobs.java` says of each."""
        return self._answers("PartitionJobs", tasks)

    def evolved_jobs(self, tasks: Iterable[dict[str, object]]) -> list[dict[str, Any]]:
        """Run jobs in a local cluster, and return what `java/EvolvedJobs.java` says of each."""
        return self._answers("EvolvedJobs", tasks)

    def group_aggregates(self, lines: Iterable[str]) -> list[str]:
        """Return the answer of `java/GroupAggregates.java` for each history."""
        passed = "".join(f"{line}\n" for line in lines)
        return self._run("GroupAggregates", passed=passed).splitlines()

    def range_deletions(self, folder: Path) -> list[str]:
        """Leave a store in a folder, and return what `java/RangeDeletions.java` says of it."""
        return self._run("RangeDeletions", str(folder), passed="").splitlines()

    @contextmanager
    def rest_job(self, task: dict[str, Any]) -> Iterator[RestJob]:
        """Run the job of `java/RestJob.java` in a cluster whose REST API can be asked."""
        command = self._java("RestJob", str(2 * task["parallelism"]))
        with (
            Path(self._folder, "RestJob.log").open("w", encoding="utf-8") as log,
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
            ) as jvm,
        ):
            try:
                yield RestJob(jvm, task)
            finally:
                jvm.communicate()  # it closes its standard input, and so ends it

    def _answers(self, program: str, tasks: Iterable[dict[str, object]]) -> list[dict[str, Any]]:
        """Return the answer to each task of a program with a cluster of four slots."""
        passed = "".join(f"{json.dumps(task)}\n" for task in tasks)
        return [*map(json.loads, self._run(program, "4", passed=passed).splitlines())]

    def _run(self, program: str, *arguments: str, passed: str) -> str:
        return self._execute(self._java(program, *arguments), passed)

    def _java(self, program: str, *arguments: str) -> list[str]:
        """Return the command that runs a program, compiled when it is first needed."""
        if not Path(self._folder, f"{program}.class").exists():
            source = str(JAVA_FOLDER / f"{program}.java")
            options = ["-sourcepath", self._sources, "-d", str(self._folder)]
            self._execute(self._command("javac", *options, source))
        # No JVM here runs long enough for its second compiler to pay.
        options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        options += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED_PACKAGES]
        options.append(f"-Djava.io.tmpdir={self._folder}")
        return self._command("java", *options, program, *arguments)

    def _command(self, tool: str, *arguments: str) -> list[str]:
        return [str(self._jdk / tool), "-cp", self._class_path, *arguments]

    def _execute(self, command: list[str], passed: str = "") -> str:
        done = subprocess.run(command, input=passed, capture_output=True, encoding="utf-8")
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout


class RestJob:
    """A job in a JVM that answers a line with a line."""

    def __init__(self, jvm: subprocess.Popen[str], task: dict[str, Any]) -> None:
        self._jvm = jvm
        answer = self.tell(task)
        self.url: str = answer["url"]
        self.job_id: str = answer["job_id"]

    def tell(self, line: str | dict[str, Any]) -> Any:
        """Tell it what `java/RestJob.java` knows, such as "cancel", and return its answer."""
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write(f"{json.dumps(line)}\n")
        self._jvm.stdin.flush()
        return json.loads(self._jvm.stdout.readline())


def in_java(text: str) -> str:
    """Return a string as it comes back from Java, pairs of surrogates joined."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def in_sql(text: str | None) -> str | None:
    """Return a string as SQL has it, a question mark for each lone surrogate."""
    return None if text is None else in_java(text).encode("utf-8", "replace").decode()


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, dt.datetime) else str(value)
