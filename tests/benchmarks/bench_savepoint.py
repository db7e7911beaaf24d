"""The reader of savepoints against a straight loop of `struct` over the same bytes.

Run `python tests/benchmarks/bench_savepoint.py`; it takes the best of interleaved rounds of CPU
time and prints both sides, their ratio and the limit that the project sets itself. With `--memory`
it prints how much memory ten times the entries take, each in a process of its own.
"""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from support.bytes import large_savepoints
from support.inside.savepoints import read_metadata

from keygroups.savepoint import read_savepoint

ROUNDS, ENTRIES, SUBTASKS = 5, 512_000, 1_000
SMALL, LARGE = 1_024_000, 10_240_000
LIMIT = 150_000
ARROW_GOAL, LONGS_GOAL = 1_200_000, 5_000_000
FORMS = ("canonical", "native", "rocksdb")

_i32 = struct.Struct(">i").unpack_from
_i64 = struct.Struct(">q").unpack_from


def best(*sides: Callable[[], object]) -> list[float]:
    """Return the best CPU time of each side, round by round in turn."""
    found = [float("inf")] * len(sides)
    for _ in range(ROUNDS):
        for number, side in enumerate(sides):
            start = time.process_time()
            side()
            found[number] = min(found[number], time.process_time() - start)
    return found


def loop_canonical(data: bytes, pos: int) -> Iterator[tuple[str, int]]:
    """A reader of nothing but this: key group, ASCII key of one length byte, namespace, long."""
    while pos < len(data):
        pos += 2
        is_last = False
        while not is_last:
            (size,) = _i32(data, pos)
            is_last = data[pos + 4] >= 0x80
            end = pos + 4 + size
            yield data[pos + 6 : end - 1].decode("ascii"), _i64(data, end + 4)[0]
            pos = end + 12
        pos += 2


def loop_native(data: bytes, pos: int) -> Iterator[tuple[str, int]]:
    """A reader of nothing but this: a count, then namespace, ASCII key, long."""
    while pos < len(data):
        (count,) = _i32(data, pos + 6)
        pos += 10
        for _ in range(count):
            end = pos + 1 + data[pos + 1]
            yield data[pos + 2 : end].decode("ascii"), _i64(data, end)[0]
            pos = end + 8


def loop_rocksdb(data: bytes, blocks: int) -> Iterator[tuple[str, int]]:
    """A reader of nothing but blocks of so many values of eight bytes, one after another."""
    key, pos = b"", 0
    for _ in range(blocks):
        for _ in range(large_savepoints.PER_BLOCK):
            shared, unshared = data[pos], data[pos + 1]
            end = pos + 3 + unshared
            key = key[:shared] + data[pos + 3 : end]
            yield key[2:-9].decode("ascii"), _i64(data, end)[0]
            pos = end + 8
        pos += 8 + 5


def consume(entries: Iterator[object]) -> int:
    return sum(1 for _ in entries)


def read(folder: Path) -> int:
    return consume(read_savepoint(folder).operator("by-string").entries())


def columns(folder: Path) -> int:
    tasks = read_savepoint(folder).operator("by-string").tasks()
    return sum(entries.count for task in tasks for entries in task.columns())


def measure_columns(form: str, folder: Path, entries: int, goal: int) -> None:
    """Print a line for a savepoint that is read into Arrow."""
    assert columns(folder) == entries
    [ours] = best(lambda: columns(folder))
    print(f"{form + ', into Arrow':36} {entries / ours:12,.0f} {'':12} {'':6} {goal:10,}")


def measure(form: str, root: Path) -> None:
    """Print a line for a format."""
    folder = root / form
    entries = large_savepoints.write(folder, form, ENTRIES)
    if form == "rocksdb":
        # The loop knows no indices, no other files and no sequence numbers.
        files = [path.read_bytes() for path in sorted(folder.glob("*.sst"))]
        blocks, rest = divmod(entries, len(files) * large_savepoints.PER_BLOCK)
        assert rest == 0

        def other() -> int:
            return sum(consume(loop_rocksdb(data, blocks)) for data in files)
    else:
        data = (folder / "keyed").read_bytes()
        loop = {"canonical": loop_canonical, "native": loop_native}[form]

        def other() -> int:
            return consume(loop(data, len(large_savepoints.header())))

    assert read(folder) == other() == entries
    ours, theirs = best(lambda: read(folder), other)
    print(
        f"String -> Long, {form:20} {entries / ours:12,.0f} {entries / theirs:12,.0f} "
        f"{ours / theirs:6.2f} {LIMIT:10,}"
    )
    measure_columns(f"String -> Long, {form}", folder, entries, ARROW_GOAL)


def measure_metadata() -> None:
    """Print the line for `_metadata`."""
    data = large_savepoints.wide_metadata(SUBTASKS)

    def other() -> int:
        """Read nothing but the offsets, from where they are known to be."""
        total, pos = 0, 0
        mark = struct.pack(">i", large_savepoints.KEY_GROUPS)
        for _ in range(SUBTASKS):
            pos = data.index(mark, pos) + 4
            total += sum(struct.unpack_from(f">{large_savepoints.KEY_GROUPS}q", data, pos))
            pos += 8 * large_savepoints.KEY_GROUPS
        return total

    metadata = read_metadata(data, "_metadata")
    assert sum(len(operator.subtasks) for operator in metadata.operators) == SUBTASKS
    ours, theirs = best(lambda: read_metadata(data, "_metadata"), other)
    print(
        f"_metadata, {SUBTASKS:,} subtasks, ms      {ours * 1e3:12.1f} {theirs * 1e3:12.1f} "
        f"{ours / theirs:6.2f} {1000:10,}"
    )


def memory() -> None:
    """Print the most memory of a process that reads a million entries, and ten million."""
    print(f"{'peak memory, MB':36} {SMALL:12,} {LARGE:12,}")
    for form in ("canonical", "native"):
        peaks = []
        for entries in (SMALL, LARGE):
            with TemporaryDirectory() as root:
                large_savepoints.write(Path(root) / form, form, entries)
                command = [sys.executable, __file__, "--read", f"{root}/{form}"]
                run = subprocess.run(command, capture_output=True, text=True, check=True)
            count, peak = map(int, run.stdout.split())
            assert count == entries
            peaks.append(peak / 1024)
        print(f"String -> Long, {form:20} {peaks[0]:12.1f} {peaks[1]:12.1f}")


def main() -> None:
    """Print a line for each."""
    if "--read" in sys.argv:
        print(read(Path(sys.argv[2])), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return
    if "--memory" in sys.argv:
        memory()
        return
    print(f"Python {sys.version.split()[0]}, best of {ROUNDS} rounds, entries a second and core")
    print(f"{'':36} {'ours':>12} {'struct loop':>12} {'ratio':>6} {'limit':>10}")
    measure_metadata()
    with TemporaryDirectory() as root:
        for form in FORMS:
            measure(form, Path(root))
        for form in ("canonical", "rocksdb"):
            folder = Path(root) / f"{form} sizes"
            entries = large_savepoints.write(folder, form, ENTRIES, one_size=False)
            measure_columns(f"{form}, keys of ten sizes", folder, entries, ARROW_GOAL)
        longs = large_savepoints.write_longs(Path(root) / "longs", 4 * ENTRIES)
        measure_columns("Long -> Long, canonical", Path(root) / "longs", longs, LONGS_GOAL)


if __name__ == "__main__":
    main()
