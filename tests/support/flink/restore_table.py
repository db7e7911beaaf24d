"""What restores have compared, as a table."""

from __future__ import annotations

from collections import Counter

HEADS = ("version", "backend", "parallelism", "restores", "states", "keys", "entries equal")


class RestoreTable:
    """Restores, a line for each version, backend and parallelism of the job."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str, int], Counter[str]] = {}

    def add(
        self, version: str, backend: str, parallelism: int, states: int, keys: int, entries: int
    ) -> None:
        """Add a restore in which all of these were equal, and print it."""
        line = self._lines.setdefault((version, backend, parallelism), Counter())
        line.update(dict(zip(HEADS[3:], (1, states, keys, entries))))
        print(
            f"{version} {backend}, parallelism {parallelism}: {states} states, {keys:,} keys, "
            f"{entries:,} entries equal"
        )

    def __str__(self) -> str:
        lines: list[tuple[str, ...]] = [HEADS]
        for line, counts in sorted(self._lines.items()):
            lines.append((*map(str, line), *(f"{counts[head]:,}" for head in HEADS[3:])))
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
