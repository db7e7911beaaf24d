"""A task, its steps, and how they run: as a user does, in this folder, with nothing set."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from support.bytes.real_savepoints import point

CHECKOUT = Path(__file__).parents[3]
SAVEPOINT = point("2.3.0-heaptimers-canonical")  # The savepoint of examples/data.
NEW = point("2.3.0-rocks-canonical")
NATIVE = point("2.3.0-rocksinc-native")
CHECKPOINT = point("2.3.0-merged-checkpoint")
FLINK_1 = point("1.20.5-heap-canonical")
SQL = point("2.3.0-sqlheap-canonical")
POJOS = point("2.3.0-pojo-canonical")
POINTS = {
    "NEW": NEW,
    "NATIVE": NATIVE,
    "CHECKPOINT": CHECKPOINT,
    "FLINK_1": FLINK_1,
    "SQL_JOB": SQL,
    "POJOS": POJOS,
}

PLACES: dict[str, str] = {"VENV": sys.prefix, "CHECKOUT": str(CHECKOUT)}
"""The words of a step that stand for places, and these."""

_OURS = re.compile("PYTHON|KEYGROUPS")  # Variables that a new user has not set.


class Step(NamedTuple):
    """Lines of a shell or a program; `fails` says that it ends with an error."""

    text: str
    fails: bool = False

    @property
    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip()]


class Output(NamedTuple):
    """What a step printed."""

    out: str
    err: str


class Task(NamedTuple):
    """A question of a user; `check` raises where its answer is not the true one.

    `needs` says why it cannot be tried here, "" where it can.
    """

    question: str
    steps: Sequence[Step]
    check: Callable[..., None]
    needs: Callable[[], str]


class HalfSolvedError(Exception):
    """The answer is true, and not as a user wants it."""


def tasks() -> tuple[list[Task], Callable[..., Callable[[Callable[..., None]], None]]]:
    """Return a list of tasks, and the decorator that adds one to it.

    The decorator takes the question and the steps; the function that follows is the check, which
    is given each step's output.
    """
    made: list[Task] = []

    def task(
        question: str, *steps: str | Step, needs: Callable[[], str] = lambda: ""
    ) -> Callable[[Callable[..., None]], None]:
        def add(check: Callable[..., None]) -> None:
            used = [step if isinstance(step, Step) else Step(step) for step in steps]
            made.append(Task(question, used, check, needs))

        return add

    return made, task


def work() -> Path:
    """Return the folder that the tasks write to."""
    return Path(PLACES["WORK"])


def run(step: Step) -> Output:
    """Run a step as a user does, and raise where it ends otherwise than it should."""
    text = re.sub(rf"\b({'|'.join(PLACES)})\b", lambda match: PLACES[match[0]], step.text)
    environment = {name: value for name, value in os.environ.items() if not _OURS.search(name)}
    folders = environment["PATH"].split(os.pathsep)
    path = [folder for folder in folders if folder != f"{sys.prefix}/bin"]
    if text.startswith("$ "):
        path.insert(0, f"{sys.prefix}/bin")
        command = ["bash", "-ec", text.replace("\n$ ", "\n").removeprefix("$ ")]
    else:
        # Spark's workers are then the system's, as for who calls .venv/bin/python.
        (work() / "job.py").write_text(text)
        command = [sys.executable, str(work() / "job.py")]
    environment["PATH"] = os.pathsep.join(path)
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    assert bool(done.returncode) == step.fails, f"status {done.returncode}: {done.stderr}"
    return Output(done.stdout, done.stderr)


def solve(task: Task, verbose: bool) -> str:
    """Return "solved", "half: " or "failed: " and why, or "left out: " and what is not here."""
    if reason := task.needs():
        return f"left out: {reason}"
    outputs = []
    try:
        for step in task.steps:
            outputs.append(run(step))
            if verbose:
                print(step.text.strip(), *outputs[-1], sep="\n\n")
        task.check(*outputs)
    except HalfSolvedError as half:
        return f"half: {half}"
    except Exception as error:  # whatever the answer was, the other tasks run too
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).parent == Path(__file__).parent]
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return f"failed: {place}: {str(error) or type(error).__name__}"
    return "solved"
