"""The files of a savepoint, and those in the folder of a job: who uses what, and what nobody uses.

`savepoint_files` lists what one savepoint or checkpoint needs, each a `SavepointFile`.
`job_files` looks at all checkpoints in a job's folder, and returns `JobFiles` with a `JobFile` for
each file there. `keygroups files PATH` prints both in a shell.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from keygroups._checks import record_repr
from keygroups._show.tables import Section, html_sections, text_table
from keygroups.errors import printable, short

__all__ = ["JobFile", "JobFiles", "SavepointFile"]
__dir__ = __all__.copy

_SHOWN = 50  # files of a table
_LONGEST = 100  # characters of a path
_JOB_HEADINGS = ("file", "bytes", "written (UTC)", "used by")


class SavepointFile(NamedTuple):
    """A file that a savepoint or checkpoint needs.

    `path` is its path or URL; `bytes` its size, None where it is not there; `used_bytes` how many
    of these the savepoint uses, fewer than all of a file that has state of several. `kind` is
    "keyed state", "operator state", "coordinator" or "in-flight data", `operators` and `subtasks`
    are whose state it has. `is_shared` says that it is not in the savepoint's own folder, where
    other checkpoints may use it too.
    """

    path: str
    bytes: int | None
    used_bytes: int
    kind: str
    operators: tuple[str, ...]
    subtasks: tuple[int, ...]
    is_shared: bool

    def __repr__(self) -> str:
        return record_repr(self)


class JobFile(NamedTuple):
    """A file in a job's folder: when it was written, and the checkpoints that need it.

    `written` is None where its store does not tell, `used_by` has the names of the folders of
    checkpoints. `is_owned_by_tasks` says that it is in `taskowned`, where a running job keeps
    files that no checkpoint has named yet.
    """

    path: str
    bytes: int
    written: dt.datetime | None
    used_by: tuple[str, ...]
    is_owned_by_tasks: bool

    def __repr__(self) -> str:
        return record_repr(self)


@dataclass(frozen=True)
class JobFiles:
    """The files in a job's folder; `checkpoints` are those that were read, by name.

    `unread` has the name of each that could not be read, with the reason: what it needs is not
    known, so that nothing is `unused` then; neither is anything where there is no checkpoint.
    """

    folder: str
    checkpoints: tuple[str, ...]
    unread: tuple[tuple[str, str], ...]
    files: tuple[JobFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def unused(self) -> tuple[JobFile, ...]:
        """The files that no checkpoint needs, but for those that tasks own.

        A running job may have written some of these for a checkpoint that is not yet complete.
        """
        if self.unread or not self.checkpoints:
            return ()
        return tuple(
            file for file in self.files if not file.used_by and not file.is_owned_by_tasks
        )

    def __repr__(self) -> str:
        return f"<JobFiles: {self._summary()}>"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _summary(self) -> str:
        unused = self.unused
        return (
            f"{len(self.files):,} files of {self.bytes:,} bytes, {len(self.checkpoints):,} "
            f"checkpoints; {len(unused):,} files of {sum(file.bytes for file in unused):,} bytes "
            "that none of them needs"
        )

    def _head(self) -> Iterator[str]:
        yield printable(self.folder)
        yield self._summary()
        for name, reason in self.unread:
            text = printable(f"{name}: {reason}")
            yield f"not read, so that nothing is known to be unused: {text}"

    def _lines(self) -> Iterator[str]:
        yield from self._head()
        rows = _rows(self.files)
        if rows:
            yield from text_table([_JOB_HEADINGS, *rows], (0, 2, 3))
        if len(self.files) > len(rows):
            yield f"and {len(self.files) - len(rows):,} files more, which are smaller"

    def _repr_html_(self) -> str:
        rows = _rows(self.files)
        header = _JOB_HEADINGS if rows else ()
        return html_sections([Section([*self._head()]), Section([], header, rows, (0, 2, 3))])


def _rows(files: Sequence[JobFile]) -> list[tuple[str, ...]]:
    """Return the cells of the largest files, those that nobody needs first."""
    ordered = sorted(files, key=lambda file: (bool(file.used_by), -file.bytes, file.path))
    return [
        (
            short(file.path, _LONGEST),
            f"{file.bytes:,}",
            "-" if file.written is None else f"{file.written:%Y-%m-%d %H:%M}",
            short(", ".join(file.used_by), _LONGEST)
            or ("tasks" if file.is_owned_by_tasks else "nobody"),
        )
        for file in ordered[:_SHOWN]
    ]
