"""Savepoints of thousands of subtasks and hundreds of operators, and what asks only `_metadata`.

Run `python tests/benchmarks/bench_large_metadata.py [shape...]`. Each shape is written once, and
each call on it measured in a process of its own: the processor time, that of the clock, and the
most memory that the process took over what it has with nothing but the imports. `--entries` adds
the calls that read the headers of all subtasks, or their entries.
"""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from support.bytes.wide_savepoints import Shape, write
from support.inside.savepoints import read_metadata

from keygroups.cli import main as command
from keygroups.reports import RescaleReport
from keygroups.rescale import RescalePlan
from keygroups.savepoint import Savepoint, SavepointWriter, read_savepoint

SHAPES = {
    "one operator of 5,000 subtasks": Shape("canonical", 1, 5_000, 32_768),
    "the same, native": Shape("native", 1, 5_000, 32_768),
    "500 operators of 10 subtasks": Shape("canonical", 500, 10, 32_768),
    "500 operators of 100 subtasks": Shape("canonical", 500, 100, 128),
    "5,000 subtasks of 30 SST files": Shape("rocksdb", 1, 5_000, 32_768, files=30),
}


def read(folder: Path) -> Savepoint:
    return read_savepoint(folder)


def show(folder: Path) -> str:
    return str(read(folder))


def key_group_bytes(folder: Path) -> float:
    return sum(operator.key_group_bytes().total for operator in read(folder).operators)


def per_subtask(folder: Path) -> list[float]:
    return [
        max(operator.key_group_bytes().per_subtask(operator.parallelism))
        for operator in read(folder).operators
    ]


def check(folder: Path) -> list[int]:
    savepoint = read(folder)
    return [
        savepoint.check_restore(operator, operator.parallelism, operator.max_parallelism)
        for operator in savepoint.operators
    ]


def plan(folder: Path) -> list[str]:
    return [
        str(RescalePlan(operator.max_parallelism, operator.parallelism, operator.parallelism + 1))
        for operator in read(folder).operators
    ]


def report(folder: Path) -> list[str]:
    return [
        str(
            RescaleReport(
                RescalePlan(
                    operator.max_parallelism, operator.parallelism, operator.parallelism + 1
                ),
                operator.key_group_bytes(),
            )
        )
        for operator in read(folder).operators
    ]


def change_plan(folder: Path) -> object:
    savepoint = read(folder)
    groups = min(operator.max_parallelism for operator in savepoint.operators)
    parallelism = max(operator.parallelism for operator in savepoint.operators)
    editor = SavepointWriter.from_existing_savepoint(savepoint, f"{folder}-new")
    editor.set_max_parallelism(max(groups // 2, parallelism))
    return editor


def run_command(folder: Path) -> int:
    with redirect_stdout(StringIO()):
        return command(["savepoint", str(folder)])


CALLS: dict[str, Callable[[Path], object]] = {
    "read_savepoint": read,
    "print(savepoint)": show,
    "key_group_bytes": key_group_bytes,
    "... per subtask": per_subtask,
    "check_restore": check,
    "RescalePlan": plan,
    "RescaleReport": report,
}
MORE: dict[str, Callable[[Path], object]] = {
    "change_max_parallelism, plan": change_plan,
    "keygroups savepoint PATH": run_command,
}


def most_memory() -> int:
    """Return the most bytes that this process had; getrusage counts those of its parent too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def measure(name: str, folder: Path) -> str:
    """Measure a call, in this process."""
    before = most_memory()
    clock, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(action="ignore"):
        kept = ({**CALLS, **MORE})[name](folder)
    took = time.process_time() - processor, time.perf_counter() - clock
    memory = most_memory() - before
    del kept
    return f"{took[0]:8.2f} {took[1]:8.2f} {memory / 1e6:8.0f}"


def traced(folder: Path) -> str:
    """Count what Python has of memory when `_metadata` is read, at most and in the end."""
    tracemalloc.start()
    kept = read_metadata((folder / "_metadata").read_bytes(), "_metadata")
    now, most = tracemalloc.get_traced_memory()
    del kept
    return f"tracemalloc of read_metadata: at most {most / 1e6:.0f} MB, {now / 1e6:.0f} MB kept"


def main() -> None:
    """Print a line for each call on each shape."""
    if "--measure" in sys.argv:
        _, _, name, folder = sys.argv
        print(traced(Path(folder)) if name == "traced" else measure(name, Path(folder)))
        return
    calls = [*CALLS, *(MORE if "--entries" in sys.argv else ())]
    chosen = [argument for argument in sys.argv[1:] if argument != "--entries"]
    for title, shape in SHAPES.items():
        if chosen and not any(text in title for text in chosen):
            continue
        with TemporaryDirectory() as root:
            size = write(Path(root) / "point", shape)
            groups = f"max parallelism {shape.max_parallelism:,}"
            print(f"{title}, {groups}: _metadata of {size / 1e6:.1f} MB")
            print(f"  {'':30} {'CPU, s':>8} {'clock':>8} {'MB':>8}")
            for name in [*calls, "traced"]:
                run = [sys.executable, __file__, "--measure", name, f"{root}/point"]
                done = subprocess.run(run, capture_output=True, text=True, check=False)
                output = done.stdout.rstrip() or done.stderr.splitlines()[-1]
                print(f"  {output}" if name == "traced" else f"  {name:30} {output}", flush=True)


if __name__ == "__main__":
    main()
