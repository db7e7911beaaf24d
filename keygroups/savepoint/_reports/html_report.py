"""A page for a browser: the operators of a savepoint, and where their state is heavy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from keygroups._checks import check_class, check_str, iterate
from keygroups._show.page import heading, page, wide
from keygroups._show.svg import bars_svg, steps_svg
from keygroups._show.tables import Section, html_sections
from keygroups.errors import short
from keygroups.key_group_range import ranges_imbalance
from keygroups.load import KeyGroupLoad, heaviest_weights
from keygroups.rescale import RescalePlan
from keygroups.savepoint._operator import operator_lines
from keygroups.savepoint._operator_tables import states_section
from keygroups.savepoint._reports.report import (
    NO_KEYED_STATE,
    OperatorReport,
    advices_of_states,
    is_reported,
    key_groups_section,
    keys_section,
    operator_reports,
    warnings_section,
)
from keygroups.savepoint._savepoint import (
    Savepoint,
    advices_of,
    headline,
)
from keygroups.savepoint._savepoint_tables import heaviest, in_flight_sections, operators_section
from keygroups.savepoint.summaries import OperatorSummary, summary_sections
from keygroups.skew import HOT, UNEVEN_KEY_GROUPS, are_uneven

_LISTED = 200  # operators in the table
_DETAILED = 20  # operators with a section of their own, unless they are asked for
_FARTHEST = 500  # parallelisms that are looked at on either side
_LABEL = 100  # characters of a name
_ROWS = 24  # parallelisms in a table


def html_report(
    savepoint: Savepoint,
    operators: Iterable[str] | None = None,
    top: int = 5,
    *,
    full: bool = False,
) -> str:
    """Return a page of HTML: the operators, where their state is heavy, other parallelisms.

    `operators` are uids, names or ids of those with a section of their own, None the 20 with the
    most bytes of those with keyed state or splits; of more the page says how many. `top` is how
    many key groups and keys are named, at least 1. Each parallelism from half to twice the
    operator's, at most 500 away, is drawn. With `full` the page also has the summary of each
    operator with a section: it reads all their entries, as `Savepoint.summary` does.

    The page is whole by itself, loads nothing and has no script; whatever is from the savepoint
    is escaped. It is for a file, or a notebook's HTML. What is raised is that of
    `operator_reports`.

    >>> from tempfile import mkdtemp
    >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
    >>> from keygroups.types import LONG, STRING
    >>> folder = mkdtemp() + "/savepoint"
    >>> with SavepointWriter(folder) as writer:
    ...     counts = [ValueStateDescriptor("count", LONG)]
    ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
    ...     by_user.write("count", "<ann>", 7)
    >>> page = html_report(read_savepoint(folder))
    >>> "&lt;ann&gt;" in page, "<ann>" in page
    (True, False)
    """
    check_class("savepoint", savepoint, Savepoint, "a Savepoint")
    is_full = check_class("full", full, bool, "a bool")
    left_out: list[str] = []
    if operators is None:
        reported = [operator for operator in savepoint.operators if is_reported(operator)]
        shown = heaviest(reported, _DETAILED)
        if len(shown) < len(reported):
            left_out.append(
                f"{len(reported) - len(shown):,} more operators with state have no section: "
                f"the {_DETAILED} with the most bytes have. Name others to see them."
            )
        operators = [operator.operator_id for operator in shown]
    names = [
        savepoint.operator(check_str("operator", name)).operator_id
        for name in iterate("operators", "names", operators)
    ]
    reports = operator_reports(savepoint, names, None, top)
    summaries = savepoint.summary(names, top=top).operators if is_full else ()
    by_id = {summary.operator_id: summary for summary in summaries}
    loads = {operator_id: summary.key_group_bytes for operator_id, summary in by_id.items()}
    contents = [
        html_sections([Section([headline(savepoint), *advices_of(savepoint), *left_out])]),
        heading(2, "Operators"),
        wide(html_sections([operators_section(savepoint.operators, _LISTED, loads)])),
        *(
            wide(html_sections([section]))
            for section in in_flight_sections(savepoint.operators, _LISTED)
        ),
    ]
    for report in reports:
        contents += _operator(report)
        if report.operator.operator_id in by_id:
            contents += _summary(by_id[report.operator.operator_id])
    return page(f"State of {savepoint.path}", contents)


def _operator(report: OperatorReport) -> Iterator[str]:
    """Yield the section of an operator."""
    operator, load = report.operator, report.key_group_bytes
    yield heading(2, f"Operator {short(operator.label, _LABEL)}")
    lines = [*operator_lines(operator), *report.unread, *advices_of_states(report.states)]
    sections = [Section(lines), warnings_section(report)]
    yield html_sections(sections)
    for section in report.connector_sections():
        yield heading(3, section.caption)
        yield wide(html_sections([section]))
    if not report.has_keyed_state:
        yield html_sections([Section([NO_KEYED_STATE])])
        return
    yield heading(3, "Keyed states")
    yield wide(html_sections([states_section(report.states)]))
    if load is not None:
        yield heading(3, "Bytes by key group")
        yield bars_svg(load.weights, "key group")
        yield wide(html_sections([key_groups_section(report)]))
        yield heading(3, "Bytes by subtask")
        yield bars_svg(load.per_subtask(operator.parallelism), "subtask", HOT)
        skew = load.skew(operator.parallelism)
        if UNEVEN_KEY_GROUPS in [cause.name for cause in skew.causes]:
            yield html_sections([Section(skew._texts())])
    yield heading(3, "Heaviest keys")
    yield wide(html_sections([keys_section(report)]))
    if load is not None:
        yield from _parallelisms(load, operator.parallelism)


def _summary(summary: OperatorSummary) -> Iterator[str]:
    """Yield the summary of an operator, without the line that the table of all has."""
    for section in summary_sections([summary]):
        yield heading(3, section.caption)
        yield wide(html_sections([section]))


def _parallelisms(load: KeyGroupLoad, now: int) -> Iterator[str]:
    """Yield a chart and a table of the parallelisms from half to twice the present one."""
    groups = load.max_parallelism
    low = max((now + 1) // 2, now - _FARTHEST)
    high = min(2 * now, now + _FARTHEST, groups)
    weights = heaviest_weights(load, low, high)
    yield heading(3, f"Parallelisms from {low:,} to {high:,}")
    yield steps_svg(range(low, high + 1), weights, load.total, now)
    shown = list(range(low, high + 1))
    caption = "What each parallelism would do"
    if len(shown) > _ROWS:
        better = [ranked.parallelism for ranked in load.recommend(low, high)[: _ROWS - 1]]
        shown = sorted({now, *better})
        caption = (
            "Parallelisms with a lighter heaviest subtask than any lower one, and the present"
        )
    rows, marks = [], {}
    for index, parallelism in enumerate(shown):
        imbalance = load.imbalance(parallelism)
        moved = RescalePlan(groups, now, parallelism).moved_weight(load) / (load.total or 1)
        rows.append(
            (
                f"{parallelism}, now" if parallelism == now else f"{parallelism}",
                f"{weights[parallelism - low]:,}",
                f"{imbalance:.2f}",
                f"{len(load.idle_subtasks(parallelism)):,}",
                f"{moved:.1%}",
            )
        )
        if imbalance >= HOT:
            marks[index] = "hot"
    header = ("parallelism", "heaviest subtask", "imbalance", "idle subtasks", "bytes that move")
    caption += f"; hot: the heaviest subtask has {HOT} times the mean and more"
    uneven = [
        f"{parallelism}, at best {ranges_imbalance(groups, parallelism):.2f} times the mean"
        for parallelism in shown
        if are_uneven(groups, parallelism)
    ]
    texts = [f"{UNEVEN_KEY_GROUPS} at {'; '.join(uneven)}"] if uneven else []
    yield wide(html_sections([Section(texts, header, rows, caption=caption, marks=marks)]))
