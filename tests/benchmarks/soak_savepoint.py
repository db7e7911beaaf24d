"""A savepoint of many gigabytes, made of real key groups: read, compared, re-keyed, edited.

Run `python tests/benchmarks/soak_savepoint.py [--gigabytes N] [--folder PATH]`; N is 1 unless it
is given, and the disk has to have room for three times as much, for
`--steps read key_sizes diff` once. It prints for each step the
processor time, the megabytes and entries in a second of that, and the most memory of the process,
which has no more than that step to do. All is removed at the end.

Each key group has the entries that a real job wrote for one of its keys, again and again under
other keys. These end in pieces of "Aa" and "BB", which have the same hashCode in Java, so that as
many keys as there have to be are in one key group.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice, product
from pathlib import Path
from tempfile import mkdtemp

sys.path.append(str(Path(__file__).parents[1]))

from support.bytes import savepoint_bytes as sb
from support.bytes.framed_entries import framed_entries
from support.bytes.real_savepoints import point
from support.bytes.trimmed_savepoints import content, fewer_states, first_subtask
from support.inside.savepoints import KeyGroupsHandle, header_size

from keygroups import assign_to_key_group, compute_key_group_range_for_operator_index
from keygroups.savepoint import DELETE, SavepointWriter, change_max_parallelism, read_savepoint
from keygroups.state_keys import key_group_prefix
from keygroups.types import STRING

OPERATOR, MAX_PARALLELISM, NEW_MAX_PARALLELISM, PARALLELISM = "by-string", 1_024, 4_096, 8
PIECES = 20  # at the end of a key: a million keys in each key group
STATES = ("visits", "avg", "byCity", "mean", "ttlMap", "count", "sum", "label", "history", "pair")
DOOMED = "AaAaAaAa"  # the ends of the keys that are deleted: one in sixteen

Template = tuple[int, bytes, bytes]
"""An entry: the number of its state, what follows the key, and the value."""


def templates() -> dict[str, list[Template]]:
    """Return the entries that Flink wrote, by their keys, in the order of the states."""
    by_key: dict[str, list[Template]] = {}
    operator = read_savepoint(point("2.3.0-heap-canonical").path).operator(OPERATOR)
    for task in operator.tasks(STATES):
        for entry in framed_entries(task):
            size = 1 + len(entry.key)
            if entry.encoded_key[:size] != bytes([size]) + entry.key.encode("ascii", "ignore"):
                continue  # other characters take more bytes
            template = STATES.index(entry.state), entry.encoded_key[size:], entry.encoded_value
            by_key.setdefault(entry.key, []).append(template)
    return {key: sorted(entries) for key, entries in by_key.items() if len(entries) >= len(STATES)}


def bases(keys: list[str]) -> list[tuple[str, str]]:
    """Return for each key group what its keys start with, and the key whose entries it has."""
    chosen: dict[int, tuple[str, str]] = {}
    number = 0
    while len(chosen) < MAX_PARALLELISM:
        key = keys[number % len(keys)]
        base = f"{key}-{number}-"
        group = assign_to_key_group(base + "Aa" * PIECES, MAX_PARALLELISM, STRING)
        chosen.setdefault(group, (base, key))
        number += 1
    return [chosen[group] for group in range(MAX_PARALLELISM)]


def key_group_bytes(group: int, base: str, entries: list[Template], ends: list[bytes]) -> bytes:
    """Return a key group in the canonical format, with the entries for keys of all these ends."""
    prefix = key_group_prefix(group, MAX_PARALLELISM)
    size = len(base) + len(ends[0])
    out, last = [], -1
    for place, (state, behind, value) in enumerate(entries):
        is_last = place + 1 == len(entries) or entries[place + 1][0] != state
        head = sb.i32(len(prefix) + 1 + size + len(behind)) + prefix
        head += bytes([1 + size]) + base.encode()
        tail = behind + sb.i32(len(value)) + value
        if state != last:
            out.append(state.to_bytes(2, "big"))
            last = state
        out.append(head + (tail + head).join(ends[:-1] if is_last else ends) + tail)
        if is_last:
            out.append(head[:4] + bytes([head[4] | 0x80]) + head[5:] + ends[-1] + tail)
    return b"".join([*out, b"\xff\xff"])


def write(folder: Path, size: int) -> int:
    """Write a savepoint of about so many bytes; return how many entries it has."""
    folder.mkdir()
    real = point("2.3.0-heap-canonical")
    handle = first_subtask(real, OPERATOR).managed_keyed
    assert isinstance(handle, KeyGroupsHandle)
    # In the order of STATES, which are all VALUE, LIST, MAP or folding states.
    found = content(real, handle.stream)[: header_size(handle)]
    header = fewer_states(found, STATES)
    by_key = templates()
    chosen = bases([*by_key])
    two, three = (
        sum(len(key_group_bytes(0, base, by_key[key], _ends(count))) for base, key in chosen)
        for count in (2, 3)
    )
    once = three - two
    ends = _ends(size // once)
    tasks = []
    for index in range(PARALLELISM):
        groups = compute_key_group_range_for_operator_index(MAX_PARALLELISM, PARALLELISM, index)
        offsets = []
        with (folder / f"keyed-{index}").open("wb") as file:
            file.write(header)
            for group in groups:
                offsets.append(file.tell())
                base, key = chosen[group]
                file.write(key_group_bytes(group, base, by_key[key], ends))
            stream = sb.relative(f"keyed-{index}", file.tell())
        keyed = sb.canonical(groups.start_key_group, offsets, stream)
        tasks.append(sb.subtask(index, managed_keyed=keyed))
    operator = sb.operator(
        tasks, uid=OPERATOR, parallelism=PARALLELISM, max_parallelism=MAX_PARALLELISM
    )
    sb.write(folder, [operator])
    return len(ends) * sum(len(by_key[key]) for _, key in chosen)


def _ends(count: int) -> list[bytes]:
    assert 0 < count <= 2**PIECES
    pieces = product((b"Aa", b"BB"), repeat=PIECES)
    return [b"".join(of_key) for of_key in islice(pieces, count)]


def read(old: Path, new: Path) -> int:
    return sum(1 for _ in read_savepoint(old).operator(OPERATOR).entries())


def columns(old: Path, new: Path) -> int:
    """Read a VALUE and a MAP as columns, each of which passes over all else."""
    operator = read_savepoint(old).operator(OPERATOR)
    readers = map(operator.to_arrow_batch_reader, ("visits", "byCity"))
    return sum(batch.num_rows for reader in readers for batch in reader)


def summarise(old: Path, new: Path) -> int:
    (operator,) = read_savepoint(old).summary().operators
    return sum(state.entries or 0 for state in operator.states)


def weigh_keys(old: Path, new: Path) -> int:
    return len(read_savepoint(old).operator(OPERATOR).key_sizes(100))


def compare(old: Path, new: Path) -> int:
    """Compare it with itself: each entry is read twice, and none is different."""
    comparison = read_savepoint(old).compare(read_savepoint(old))
    assert not comparison.has_differences
    return sum(state.equal for operator in comparison.operators for state in operator.states)


def change_key_groups(old: Path, new: Path) -> int:
    report = change_max_parallelism(old, NEW_MAX_PARALLELISM, new)
    return sum(state.entries for operator in report.operators for state in operator.written)


def edit(old: Path, new: Path) -> int:
    """Delete a value in sixteen of one state, and change the others."""
    with SavepointWriter.from_existing_savepoint(old, new) as writer:
        writer.operator(OPERATOR).map_entries(
            "count", lambda entry: DELETE if entry.key.endswith(DOOMED) else entry.value + 1
        )
    (operator,) = writer.report().operators
    return sum((state.kept or 0) + (state.changed or 0) for state in operator.states)


def delete(old: Path, new: Path) -> int:
    """Delete one key of each key group."""
    first = "Aa" * PIECES
    with SavepointWriter.from_existing_savepoint(old, new) as writer:
        writer.operator(OPERATOR).delete_keys(base + first for base, _ in bases([*templates()]))
    (operator,) = writer.report().operators
    return sum(state.kept or 0 for state in operator.states)


STEPS: dict[str, Callable[[Path, Path], int]] = {
    "read": read,
    "columns": columns,
    "summary": summarise,
    "key_sizes": weigh_keys,
    "diff": compare,
    "change_max_parallelism": change_key_groups,
    "delete_keys": delete,
    "map_entries": edit,
}


def main() -> None:
    """Write a savepoint, and print a line for each step."""
    if sys.argv[1:2] == ["--step"]:
        name, old, new = sys.argv[2:]
        start = time.process_time()
        count = STEPS[name](Path(old), Path(new))
        took = time.process_time() - start
        status = Path("/proc/self/status").read_text()
        print(count, took, status.partition("VmHWM:")[2].split()[0])
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--folder", help="where the savepoints are to be meanwhile")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=[*STEPS])
    options = parser.parse_args()
    root = Path(mkdtemp(prefix="soak-", dir=options.folder))
    try:
        entries = write(root / "old", int(options.gigabytes * 1e9))
        size = sum(path.stat().st_size for path in (root / "old").iterdir())
        print(f"{size / 1e9:.2f} GB, {entries:,} entries, {MAX_PARALLELISM:,} key groups")
        print(f"{'':24} {'CPU, s':>8} {'MB/s':>8} {'entries/s':>10} {'peak MB':>8} {'result':>12}")
        for name in options.steps:
            run = [sys.executable, __file__, "--step", name, str(root / "old"), str(root / "new")]
            done = subprocess.run(run, capture_output=True, text=True, check=True)
            result, took, peak = map(float, done.stdout.split())
            print(
                f"{name:24} {took:8.1f} {size / took / 1e6:8.1f} {entries / took:10,.0f} "
                f"{peak / 1024:8.0f} {result:12,.0f}",
                flush=True,
            )
            shutil.rmtree(root / "new", ignore_errors=True)
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
