"""The reports of skew and of rescaling, as text and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING

from keygroups._checks import exact_repr
from keygroups._show.tables import Section, data_frame, html_sections, text_table
from keygroups.errors import printable
from keygroups.hashing import TUPLE_NOTE
from keygroups.load import KeyGroupLoad
from keygroups.reports._diagnosis import (
    HotKey,
    HotKeyGroup,
    HotSubtask,
    SubtaskDetail,
    SubtaskRow,
)
from keygroups.reports._rescale import RescaleReport
from keygroups.skew import HOT, NOTHING_TO_DO, Cause, head_texts
from keygroups.types import TUPLE, KeyType

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

__all__ = [
    "HotKey",
    "HotKeyGroup",
    "HotSubtask",
    "RescaleReport",
    "SkewReport",
    "SubtaskDetail",
    "SubtaskRow",
]
__dir__ = __all__.copy

_WIDTH = 80
_LONGEST_TABLE = 20
_DETAILED = 3  # hot subtasks with a table of their keys; the others have a line each
_LONGEST_KEYS = 36  # characters of a key, or of several in a line
_LOAD = ("subtask", "records", "share", "x mean")


@dataclass(frozen=True)
class SkewReport:
    """The load of the subtasks of a keyed stream, with causes and remedies; see `skew_report`.

    `load` and `sent` are the records per key group, before and after LocalKeyBy. `subtasks` has a
    row for each subtask, `hot_subtasks` those of at least 1.5 times the mean, hottest first.
    `null_keys` is the number of records that were left out for a null key, `detail` the requested
    subtask, `is_inferred` True if nobody declared the key type. `causes` has the shares of the
    ranges of key groups and of the keys in the heaviest subtask: their names are the `diagnosis`.
    `str()` is a text of 80 columns; a notebook shows tables.
    """

    key_type: KeyType
    parallelism: int
    batch_size: int | None
    load: KeyGroupLoad = field(repr=False)
    sent: KeyGroupLoad | None = field(repr=False)
    subtasks: tuple[SubtaskRow, ...] = field(repr=False)
    hot_subtasks: tuple[HotSubtask, ...] = field(repr=False)
    diagnosis: str
    remedy: str
    null_keys: int = 0
    detail: SubtaskDetail | None = field(default=None, repr=False)
    is_inferred: bool = field(default=False, repr=False)
    causes: tuple[Cause, ...] = field(default=(), repr=False)

    @property
    def records(self) -> int:
        """The number of all records."""
        return sum(row.records for row in self.subtasks)

    @property
    def distinct_keys(self) -> int:
        """The number of distinct keys."""
        return sum(row.distinct_keys for row in self.subtasks)

    @property
    def imbalance(self) -> float:
        """The heaviest subtask's records over the mean."""
        return self.load.imbalance(self.parallelism)

    def __str__(self) -> str:
        lines: list[str] = []
        for section in _sections(self):
            lines += ["", *(line for text in section.texts for line in wrap(text, _WIDTH))]
            if section.header:
                lines += text_table([section.header, *section.rows], section.left_columns)
        return "\n".join(lines[1:])

    def _repr_html_(self) -> str:
        return html_sections(_sections(self))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the records of each subtask; see `KeyGroupLoad.plot`."""
        return self.load.plot(self.parallelism, ax)

    def to_pandas(self) -> DataFrame:
        """Return `subtasks` as a pandas DataFrame, a row each."""
        return data_frame(SubtaskRow._fields, self.subtasks)


def _sections(report: SkewReport) -> Iterator[Section]:
    """Yield the sections of a report, which its text and the notebook show."""
    parallelism = len(report.subtasks)
    head = (report.diagnosis, report.remedy, report.causes, parallelism, report.imbalance)
    texts = [
        *head_texts(*head),
        f"{report.records:,} records, {report.distinct_keys:,} distinct keys of type "
        f"{_fit(repr(report.key_type))}, max parallelism {report.load.max_parallelism:,}",
    ]
    if report.is_inferred and isinstance(report.key_type, TUPLE):
        texts.append(f"note: {TUPLE_NOTE}")
    if report.null_keys:
        texts.append(
            f"{report.null_keys:,} records with a null key are left out: Flink would fail on them"
        )
    yield Section(texts)
    yield _subtasks(report)
    if report.sent is not None:
        sent, most = sum(report.sent.weights), max(row.sent or 0 for row in report.subtasks)
        yield Section(
            [
                f"LocalKeyBy with batches of {report.batch_size:,} sends {sent:,} records for "
                f"{report.records:,}, at most {most:,} to a subtask where "
                f"{max(row.records for row in report.subtasks):,} went"
            ]
        )
    if report.detail is not None:
        yield from _detail(report.detail, report.remedy)
    yield from _hot(report)


def _subtasks(report: SkewReport) -> Section:
    """Return the section with the load of each subtask, or of the heaviest."""
    count, behind = len(report.subtasks), report.sent is not None
    shown: Sequence[SubtaskRow] = report.subtasks
    texts = []
    if count > _LONGEST_TABLE:
        ranked = sorted(shown, key=lambda row: (-row.records, row.subtask))
        shown, rest = ranked[:_LONGEST_TABLE], ranked[_LONGEST_TABLE:]
        texts.append(f"The {_LONGEST_TABLE} heaviest subtasks of {count:,}")
        texts.append(f"The others have {rest[-1].records:,} to {rest[0].records:,} records each")
    idle = sum(not row.records for row in report.subtasks)
    if idle and report.records:
        texts.append(f"{idle:,} of {count:,} subtasks get no record")
    header = (*_LOAD, "key groups", "keys", "sent")
    cells = [
        (
            *_load(row),
            f"{row.key_groups.start_key_group}-{row.key_groups.end_key_group}",
            f"{row.distinct_keys:,}",
            f"{row.sent:,}" if behind else "",
        )
        for row in shown
    ]
    columns = len(header) if behind else len(header) - 1
    hot = {subtask.subtask for subtask in report.hot_subtasks}
    return Section(
        texts,
        header[:columns],
        [row[:columns] for row in cells],
        caption=f"Records of each subtask; hot: {HOT} times the mean and more",
        marks={index: "hot" for index, row in enumerate(shown) if row.subtask in hot},
    )


def _load(row: SubtaskRow) -> tuple[str, ...]:
    return f"{row.subtask}", f"{row.records:,}", f"{row.share:.1%}", f"{row.times_mean:.2f}"


def _detail(detail: SubtaskDetail, remedy: str) -> Iterator[Section]:
    """Yield the sections of the requested subtask, with its remedy unless it is `remedy`."""
    row = detail.row
    texts = [
        f"subtask {row.subtask}: {detail.diagnosis}, with {row.times_mean:.2f} times the mean",
        f"{row.records:,} records ({row.share:.1%}) in key groups "
        f"{row.key_groups.start_key_group} to {row.key_groups.end_key_group}",
    ]
    if detail.remedy not in (NOTHING_TO_DO, remedy):
        texts.insert(1, f"remedy: {detail.remedy}")
    header = ("records", "of the subtask", "key group", "keys") if detail.top_key_groups else ()
    groups = [
        (
            f"{group.records:,}",
            f"{group.share:.1%}",
            f"{group.key_group}",
            f"{group.distinct_keys:,}",
        )
        for group in detail.top_key_groups
    ]
    yield Section(texts, header, groups, caption="Its heaviest key groups", named_by=2)
    if detail.top_keys:
        yield _keys([], detail.top_keys)


def _keys(texts: list[str], keys: Iterable[HotKey]) -> Section:
    cells = [
        (
            f"{key.records:,}",
            f"{key.share:.1%}",
            f"{key.key_group}",
            _fit(_text(key.key), _LONGEST_KEYS),
        )
        for key in keys
    ]
    header = ("records", "of the subtask", "key group", "key")
    return Section(texts, header, cells, (3,), "Its heaviest keys", named_by=3)


def _hot(report: SkewReport) -> Iterator[Section]:
    """Yield the sections of hot subtasks: the hottest with their keys, the others in a table."""
    asked = None if report.detail is None else report.detail.row.subtask
    hot = [subtask for subtask in report.hot_subtasks if subtask.subtask != asked]
    shown = {report.remedy}
    for subtask in hot[:_DETAILED]:
        remedy = [f"remedy: {subtask.remedy}"] if subtask.remedy != report.remedy else []
        shown.add(subtask.remedy)
        yield _keys([f"subtask {subtask.subtask}: {subtask.diagnosis}", *remedy], subtask.top_keys)
    # The hottest come first in each group, and in the order of the groups.
    alike: dict[str, list[HotSubtask]] = {}
    for subtask in hot[_DETAILED:]:
        alike.setdefault(subtask.diagnosis, []).append(subtask)
    for diagnosis, others in alike.items():
        remedy = [f"remedy: {others[0].remedy}"] if others[0].remedy not in shown else []
        cells = [
            (*_load(report.subtasks[subtask.subtask]), _line(subtask.top_keys))
            for subtask in others
        ]
        title = f"{len(others):,} more hot subtask{'s' * (len(others) > 1)}: {diagnosis}"
        header, caption = (*_LOAD, "heaviest keys"), "Their records and heaviest keys"
        yield Section([title, *remedy], header, cells, (4,), caption)


def _line(keys: Sequence[HotKey]) -> str:
    """Return a line of the first keys that fit, each with its share of the subtask."""
    line = ""
    for key in keys:
        more = f"{_fit(_text(key.key), _LONGEST_KEYS - 8)} {key.share:.1%}"
        if line and len(line) + len(more) + 2 > _LONGEST_KEYS:
            break
        line = f"{line}, {more}" if line else more
    return line


def _text(key: object) -> str:
    """Return the text of a key: a str in quotes, so that an empty one shows, and None as NULL."""
    if isinstance(key, (tuple, list)):
        return f"({', '.join(map(_text, key))})"
    if isinstance(key, (str, int, dict, set, frozenset)):
        return exact_repr(key)
    return "NULL" if key is None else printable(str(key))


def _fit(text: str, length: int = 40) -> str:
    half = length // 2 - 1
    return text if len(text) <= length else f"{text[: half - 1]}...{text[-half:]}"
