"""Change the core in one place at a time, and see whether a test of the core fails.

`python tests/tools/mutants.py` draws about 300 such mutants, of each module in proportion to how
many can be made of it. In a copy of the repository it runs, for each, first the tests that ran
the changed statement, then what else is in their files: in a fork, which is quick, and where
nothing fails there, in a process of its own. It goes on where it was stopped, in `build/mutants`.
Survivors are printed as they would stand in `equivalent_mutants.txt`, whose mutants, each with
its reason, do not count. Install pandas and Polars too: tests that miss them are skipped, and what
they alone see survives.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import importlib.util
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile

import coverage
import pytest
from source_edits import Edit, Finder

ROOT = Path(__file__).resolve().parents[2]
CORE = [
    path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "keygroups").rglob("*.py"))
    if "keygroups/spark/" not in path.as_posix()
]
STATE = hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in CORE)).hexdigest()[:12]
FOLDER = Path(os.environ.get("KEYGROUPS_MUTANTS", ROOT / "build" / "mutants" / STATE))
COPY, REACHED, SECONDS, ORDER, ASKED, RESULTS = (
    FOLDER / name
    for name in ("copy", "reached", "seconds.json", "order.json", "asked.json", "results.jsonl")
)
EQUIVALENT = ROOT / "tests" / "tools" / "equivalent_mutants.txt"
OF_ALL = "tests/core/test_architecture.py"  # imports each module, and may reach no other line
MEMORY = 8 << 30  # bytes of a mutant's process
FIRST = 3  # files of tests


@dataclass(frozen=True)
class Mutant:
    """One edit of one module."""

    path: str
    edit: Edit

    def __str__(self) -> str:
        """Return the path, and the lines that it takes away and puts there."""
        old = (ROOT / self.path).read_bytes()
        sides = [side.decode().splitlines() for side in (old, self.edit.apply(old))]
        diff = list(difflib.unified_diff(sides[0], sides[1], n=0, lineterm=""))[3:]
        return "\n".join([self.path, *(f"{line[0]} {line[1:].strip()}" for line in diff)])


def sample(seed: int, count: int, names: list[str]) -> list[Mutant]:
    finders = {name: Finder((ROOT / name).read_bytes()) for name in names}
    share = count / sum(len(finder.edits) for finder in finders.values())
    mutants: list[Mutant] = []
    for name, finder in finders.items():
        number = len(finder.edits)
        shuffled = random.Random(f"{seed} {name}").sample(finder.edits, number)
        edits = islice(filter(finder.is_changed_by, shuffled), max(1, round(share * number)))
        mutants += (Mutant(name, edit) for edit in edits)
    return mutants


# What pytest calls of this module, which is a plugin of the runs below.


@cache
def usual_seconds() -> dict[str, float]:
    return dict(json.loads(SECONDS.read_text())) if SECONDS.exists() else {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if ORDER.exists():
        order = json.loads(ORDER.read_text())
        items.sort(key=lambda item: order.get(item.nodeid, [-1]))  # new ones come first


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if measured := coverage.Coverage.current():
        measured.switch_context(item.nodeid)
    else:
        end_after(20 + 10 * usual_seconds().get(item.nodeid, 1))
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    usual_seconds()[report.nodeid] = usual_seconds().get(report.nodeid, 0) + report.duration


def pytest_sessionfinish() -> None:
    if coverage.Coverage.current():
        SECONDS.write_text(json.dumps(usual_seconds()))


def end_after(seconds: float) -> None:
    """Have the process end after so much of its own time, or where it waits ten times as long."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)


def run(command: list[str], tests: list[str], limit: int = 0) -> tuple[int, str]:
    """Run tests in the copy; return how the process ended, and what it said."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        end_after(limit)  # until the first test

    options = ["-xq", "-m", "not slow", "-p", "mutants", "-p", "no:cacheprovider"]
    options += ["--hypothesis-seed=0"]  # one draw for all mutants
    options += [f"--basetemp={FOLDER / 'temporary'}"]
    variables = {"PYTHONPATH": str(COPY), "KEYGROUPS_MUTANTS": str(FOLDER)}
    if limit:
        variables["PYTHONDONTWRITEBYTECODE"] = "1"  # two mutants of a second may look the same
    with TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, *command, "-m", "pytest", *options, *tests],
            cwd=COPY,
            env=os.environ | variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=bounded,
        )
        try:
            process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it, and what it started
        output.seek(0)
        return process.returncode, output.read().decode(errors="replace").strip()


def measure() -> None:
    """Copy the repository as it is; note, once for this core, which test runs which line."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)
    if not REACHED.exists():
        ORDER.unlink(missing_ok=True)
        data = FOLDER / "unfinished"
        code, text = run(["-m", "coverage", "run", f"--data-file={data}"], ["tests/core"])
        if code:
            sys.exit(f"the tests fail without a mutant:\n{text}")
        data.rename(REACHED)


def changed_tests() -> list[str]:
    paths = (ROOT / "tests" / "core").glob("test_*.py")
    since = REACHED.stat().st_mtime
    return [f"tests/core/{path.name}" for path in paths if path.stat().st_mtime > since]


def plan(mutant: Mutant, changed: list[str]) -> list[list[str]]:
    """Return the files to run first and those to run then, as most of the time goes to load them.

    What reached the statement comes first in both, which is noted for them.
    """
    data = coverage.CoverageData(str(REACHED))
    data.read()
    lines = data.contexts_by_lineno(str(COPY / mutant.path))
    statement = range(mutant.edit.first, mutant.edit.last + 1)
    reached = {test for line in statement for test in lines.get(line, [])}
    first = []
    by_import = {test for test in reached if not test or test.startswith(OF_ALL)}
    if by_import or not reached:  # run by an import, or only in another process
        first = [OF_ALL]
        reached.update(*lines.values())
    reached.discard("")
    usual = usual_seconds()
    in_file: dict[str, float] = defaultdict(float)  # seconds of the tests that reached it
    whole: dict[str, float] = defaultdict(float)
    for test, seconds in usual.items():
        file = test.split("::")[0]
        whole[file] += seconds
        in_file[file] += seconds if test in reached else 0
    order = {}
    for test, seconds in usual.items():
        file = test.split("::")[0]
        if file not in changed:
            order[test] = [test not in reached, in_file[file], file, seconds]
    ORDER.write_text(json.dumps(order))
    files = {test.split("::")[0] for test in reached} | {*changed}
    first += changed or sorted(files, key=lambda file: whole[file])[:FIRST]
    return [first, sorted(files | {OF_ALL}) if files else ["tests/core"]]


def judge(mutant: Mutant, changed: list[str]) -> str:
    """Return the sign by which the tests noticed the mutant, or nothing."""
    target = COPY / mutant.path
    Path(importlib.util.cache_from_source(target)).unlink(missing_ok=True)
    target.write_bytes(mutant.edit.apply((ROOT / mutant.path).read_bytes()))
    try:
        for files in plan(mutant, changed):
            code, text = run([], files, limit=60)
            if code:
                break
    finally:
        shutil.copy2(ROOT / mutant.path, target)
    if code <= 0:
        return f"signal {-code}" if code else ""
    failed = re.findall(r"^(?:FAILED|ERROR) .*", text, re.MULTILINE)
    return str(failed[0] if failed else text.splitlines()[-1])


def note(mutant: Mutant, how: str) -> None:
    with RESULTS.open("a") as file:
        print(json.dumps([repr(mutant), how]), file=file)


def noted() -> dict[str, str]:
    """Return the signs by which mutants were noticed until now."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {mutant: how for mutant, how in map(json.loads, lines) if how}


def judge_in_forks(mutants: list[Mutant]) -> None:
    """Note of those mutants that a fork shows to be noticed how they are."""
    edits = [(mutant.path, list(vars(mutant.edit).values())) for mutant in mutants]
    ASKED.write_text(json.dumps(edits))
    ORDER.unlink(missing_ok=True)
    code, text = run([], ["-p", "mutants_in_forks", "tests/core"], limit=60)
    if code:
        sys.exit(f"the tests cannot be run in forks:\n{text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300, help="about so many mutants")
    about = "how the paths of the modules begin; all of the core if none is given"
    parser.add_argument("paths", nargs="*", default=["keygroups/"], help=about)
    args = parser.parse_args()
    names = [name for name in CORE if name.startswith(tuple(args.paths))]
    if not names:
        parser.error("no module of the core is at these paths")
    COPY.mkdir(parents=True, exist_ok=True)
    measure()
    changed = changed_tests()
    code, text = run([], [OF_ALL, *changed], limit=60)
    if code:
        sys.exit(f"the tests fail without a mutant:\n{text}")
    blocks = EQUIVALENT.read_text("utf-8").split("\n\n")
    equivalent = {re.sub(r"\n#.*", "", block).strip() for block in blocks}
    drawn = sample(args.seed, args.count, names)
    mutants = [mutant for mutant in drawn if str(mutant) not in equivalent]
    judge_in_forks([mutant for mutant in mutants if repr(mutant) not in noted()])
    killed = noted()
    survivors = []
    for number, mutant in enumerate(mutants, 1):
        begun = time.monotonic()
        if (how := killed.get(repr(mutant), "")) == "":
            how = judge(mutant, changed)
            note(mutant, how)
        survivors += [] if how else [mutant]
        took = time.monotonic() - begun
        where = f"{mutant.path}:{mutant.edit.first}"
        print(f"{number}/{len(mutants)} {took:.1f} s {where} {how or 'SURVIVED'}", flush=True)
    print(*(f"\nline {mutant.edit.first} of\n{mutant}" for mutant in survivors), sep="\n")
    dead = len(mutants) - len(survivors)
    print(
        f"\nseed {args.seed}: {dead} of {len(mutants)} mutants killed, {dead / len(mutants):.1%}; "
        f"{len(drawn) - len(mutants)} more are equivalent"
    )


if __name__ == "__main__":
    main()
