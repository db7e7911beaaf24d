"""Rules that tell the contents of Flink SQL's states by their names, kinds and types.

Flink: StreamingJoinOperator, GroupAggFunction, AbstractTopNFunction and the like, 1.20 and 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple


class PlanPlace(NamedTuple):
    """A place in a plan that names the columns of a row, by their role and their input."""

    columns: str
    input: int = 0


class Rule(NamedTuple):
    """The contents of a state with this name, kind and types, in operators of some kinds.

    An N in the name is a number, VIEW any text. `namespace` is VOID, SLICE (the end of a window)
    or WINDOW. `user_key` and `value` are types as `_shape` has them, "" for any.
    """

    name: str
    kind: str
    namespace: str
    user_key: str | None
    value: str
    kinds: str
    text: str
    value_place: PlanPlace | None = None
    user_key_place: PlanPlace | None = None


_INPUT, _LEFT, _RIGHT = PlanPlace("input"), PlanPlace("input"), PlanPlace("input", 1)
_ACCUMULATORS, SORT_KEY = PlanPlace("accumulators"), PlanPlace("sort key")
_GROUPS = "GroupAggregate GlobalGroupAggregate"
_SLICED = "GlobalWindowAggregate WindowAggregate"
_WINDOWED = "GroupWindowAggregate WindowAggregate"
_PYTHON_GROUPS, _PYTHON_WINDOWED = (
    "PythonGroupAggregate PythonGroupTableAggregate",
    "PythonGroupWindowAggregate",
)
_VIEWS = {
    "VOID": f"{_GROUPS} IncrementalGroupAggregate OverAggregate",
    "SLICE": _SLICED,
    "WINDOW": _WINDOWED,
}


def _of_sides(*makers: Callable[[str, PlanPlace], Rule]) -> Iterator[Rule]:
    for make in makers:
        yield make("left", _LEFT)
        yield make("right", _RIGHT)


_MATCHES = "how many rows of the other side it matches"
RULES = [
    *_of_sides(
        lambda side, place: Rule(
            *(f"{side}-records", "MAP", "VOID", "ROW", "INT", "Join"),
            f"each row of the {side} input, and how often it is there",
            user_key_place=place,
        ),
        lambda side, place: Rule(
            *(f"{side}-records", "MAP", "VOID", "ROW", "TUPLE(INT, INT)", "Join"),
            f"each row of the {side} input, with how often it is there and {_MATCHES}",
            user_key_place=place,
        ),
        lambda side, place: Rule(
            *(f"{side}-records", "MAP", "VOID", "ROW", "ROW", "Join"),
            f"by its unique key, each row of the {side} input",
            place,
        ),
        lambda side, place: Rule(
            *(f"{side}-records", "MAP", "VOID", "ROW", "TUPLE(ROW, INT)", "Join"),
            f"by its unique key, each row of the {side} input, and {_MATCHES}",
            place,
        ),
        lambda side, place: Rule(
            *(f"{side}-records", "VALUE", "VOID", None, "ROW", "Join"),
            f"the row of the {side} input; there is one at most with this key",
            place,
        ),
        lambda side, place: Rule(
            *(f"{side}-records", "VALUE", "VOID", None, "TUPLE(ROW, INT)", "Join"),
            f"the row of the {side} input, of which there is one at most with this key, and "
            f"{_MATCHES}",
            place,
        ),
        lambda side, place: Rule(
            *(f"{side}-records", "LIST", "SLICE", None, "ROW", "WindowJoin"),
            f"the rows of the {side} input in the window",
            place,
        ),
        lambda side, place: Rule(
            f"IntervalJoin{side.title()}Cache",
            *("MAP", "VOID", "LONG", "LIST(TUPLE(ROW, BOOLEAN))", "IntervalJoin"),
            f"by time in epoch milliseconds, the rows of the {side} input, and whether each was "
            "emitted",
            place,
        ),
        lambda side, place: Rule(
            f"IntervalJoin{side.title()}TimerState",
            *("VALUE", "VOID", None, "LONG", "IntervalJoin"),
            f"the time of the timer that is set for the {side} input, 0 without one",
        ),
    ),
    Rule(
        *("left", "MAP", "VOID", "LONG", "ROW", "TemporalJoin"),
        "by number, each row of the left input that waits for its time",
        _LEFT,
    ),
    Rule(
        *("right", "MAP", "VOID", "LONG", "ROW", "TemporalJoin"),
        "by time in epoch milliseconds, each version of the row of the right input; of one with "
        "the row kind -D there is none from then on",
        _RIGHT,
    ),
    Rule(
        *("next-index", "VALUE", "VOID", None, "LONG", "TemporalJoin"),
        "the number of the next row of the left input",
    ),
    Rule(
        *("timer", "VALUE", "VOID", None, "LONG", "TemporalJoin"),
        "the time of the timer that is set",
    ),
    Rule(
        *("accState", "VALUE", "VOID", None, "ROW", f"{_GROUPS} OverAggregate"),
        "the accumulators of the aggregates",
        _ACCUMULATORS,
    ),
    *(
        Rule(*("window-aggs", "VALUE", namespace, None, "ROW", kinds), text, _ACCUMULATORS)
        for namespace, kinds, text in (
            ("SLICE", _SLICED, "the accumulators of the aggregates in the slice of a window"),
            ("WINDOW", _WINDOWED, "the accumulators of the aggregates in the window"),
        )
    ),
    Rule(
        *("session-window-mapping", "MAP", "VOID", "WINDOW", "WINDOW", _WINDOWED),
        "each session, and the window under which its state is",
    ),
    *(
        rule
        for namespace, kinds in _VIEWS.items()
        for rule in (
            Rule(
                *("distinctAcc_N", "MAP", namespace, "", "", kinds),
                "each value of an aggregate with DISTINCT, and how often it is there; with FILTER "
                "a bit for each aggregate that has it",
            ),
            Rule(
                *("distinctAcc_N_null_state", "VALUE", namespace, None, "", kinds),
                "the same of NULL, which is no key of the map",
            ),
            Rule(
                *("aggN$map", "MAP", namespace, "", "", kinds),
                "each value of the aggregate, and how often it is there; of JSON_OBJECTAGG each "
                "key and its value",
            ),
            Rule(
                *("aggN$list", "LIST", namespace, None, "", kinds),
                "the values of the aggregate",
            ),
            Rule(
                *("aggN$retractList", "LIST", namespace, None, "", kinds),
                "the values of the aggregate that were retracted before they came",
            ),
            Rule(
                *("aggN$valueToOrderMap", "MAP", namespace, "", "", kinds),
                "each value of the aggregate, and the order numbers that it came with",
            ),
            Rule(
                *("aggN$orderToValueMap", "MAP", namespace, "", "", kinds),
                "by order number, the values of the aggregate that came with it",
            ),
        )
    ),
    Rule(
        *("deduplicate-state", "VALUE", "VOID", None, "ROW", "ChangelogNormalize Deduplicate"),
        "the row of the key that is kept, often of the row kind +U",
        _INPUT,
    ),
    Rule(
        *("deduplicate-state", "VALUE", "VOID", None, "BOOLEAN", "Deduplicate"),
        "whether there was a row of the key",
    ),
    Rule(
        *("already-emitted-state-boolean", "VALUE", "VOID", None, "BOOLEAN", "Deduplicate"),
        "whether the first row of the key was emitted",
    ),
    Rule(
        *("waiting-to-emit-on-timer", "VALUE", "VOID", None, "ROW", "Deduplicate"),
        "the first row of the key, which waits for its time",
        _INPUT,
    ),
    *(
        Rule(
            *(name, "MAP", "VOID", "ROW", "LIST(ROW)", "Rank SortLimit"),
            f"by sort key, {rows}",
            _INPUT,
            SORT_KEY,
        )
        for name, rows in (
            ("data-state-with-append", "the rows that are first in order"),
            ("data-state", "all rows"),
        )
    ),
    Rule(
        *("data-state-with-update", "MAP", "VOID", "ROW", "TUPLE(ROW, INT)", "Rank SortLimit"),
        "by its unique key, each row, and its place among those with the same sort key",
        _INPUT,
    ),
    Rule(
        *("sorted-map", "VALUE", "VOID", None, "", "Rank SortLimit"),
        "the sort keys in order, each with how many rows have it",
    ),
    Rule(
        *("dataState", "MAP", "VOID", "LONG", "LIST(ROW)", "TemporalSort"),
        "by time in epoch milliseconds, the rows that wait",
        _INPUT,
    ),
    Rule(
        *("inputState", "MAP", "VOID", "LONG", "LIST(ROW)", "OverAggregate PythonOverAggregate"),
        "by time in epoch milliseconds, the rows that wait or are within the frame",
        _INPUT,
    ),
    *(
        Rule(name, "VALUE", "VOID", None, "LONG", kinds, text)
        for name, kinds, text in (
            (
                "lastTriggeringTsState",
                "OverAggregate PythonOverAggregate TemporalSort",
                "the last time for which rows were emitted, in epoch milliseconds",
            ),
            ("processedCountState", "OverAggregate", "how many rows are within the frame"),
            (
                "smallestTSState",
                "OverAggregate",
                "the earliest time within the frame, in epoch milliseconds",
            ),
            (
                "cleanupTsState",
                "OverAggregate PythonOverAggregate",
                "when the state is cleared, in epoch milliseconds",
            ),
        )
    ),
    Rule(
        *("window_rank", "MAP", "SLICE", "ROW", "LIST(ROW)", "WindowRank"),
        "by sort key, the rows that are first in order in the window",
        _INPUT,
        SORT_KEY,
    ),
    Rule(
        *("window_deduplicate", "VALUE", "SLICE", None, "ROW", "WindowDeduplicate"),
        "the row of the key in the window",
        _INPUT,
    ),
    Rule(
        *("values", "VALUE", "VOID", None, "LIST(ROW)", "SinkMaterializer"),
        "the rows of the key in the order in which they came; the last is in the sink",
        _INPUT,
    ),
    Rule(
        *("nfaStateName", "VALUE", "VOID", None, "", "Match"),
        "the matches that are not complete",
    ),
    Rule(
        *("eventQueuesStateName", "MAP", "VOID", "LONG", "LIST(ROW)", "Match"),
        "by time in epoch milliseconds, the rows that wait",
        _INPUT,
    ),
    Rule(
        *("sharedBuffer-events", "MAP", "VOID", "", "LOCKABLE(ROW)", "Match"),
        "by event id, each row that is part of a match, and how many refer to it",
        _INPUT,
    ),
    Rule(
        *("sharedBuffer-entries-with-lockable-edges", "MAP", "VOID", "", "", "Match"),
        "by event and stage, what precedes it in matches",
    ),
    Rule(
        *("sharedBuffer-events-count", "MAP", "VOID", "LONG", "INT", "Match"),
        "by time in epoch milliseconds, how many events there are",
    ),
    *(
        rule
        for namespace, kinds, accumulators in (
            ("VOID", _PYTHON_GROUPS, "accumulators"),
            ("WINDOW", _PYTHON_WINDOWED, "window_state"),
        )
        for rule in (
            Rule(
                *(f"python-state-{accumulators}", "LIST", namespace, None, "BYTES", kinds),
                "the accumulators of the aggregates in Python, pickled; `Operator.as_pyflink` "
                "with a ValueStateDescriptor of PICKLED reads them",
            ),
            Rule(
                *("python-state-aggN$VIEW", "LIST", namespace, None, "BYTES", kinds),
                "the ListView of this field of the accumulator, of which `Operator.as_pyflink` "
                "reads the elements",
            ),
            Rule(
                *("python-state-aggN$VIEW", "MAP", namespace, "", "BYTES", kinds),
                "the MapView of this field of the accumulator, of which `Operator.as_pyflink` "
                "reads the keys and values",
            ),
            Rule(
                *("python-state-aggNdistinct", "MAP", namespace, "", "BYTES", kinds),
                "each value of an aggregate with DISTINCT, pickled, and how often it is there",
            ),
        )
    ),
    Rule(
        *("python-state-session-window-mapping", "MAP", "VOID", "", "BYTES", _PYTHON_WINDOWED),
        "each session, and the window under which its state is",
    ),
    *(
        Rule(*(name, "LIST", "WINDOW", None, "ROW", _PYTHON_WINDOWED), text, _INPUT)
        for name, text in (
            ("window-input", "the rows of the window, which a pandas aggregate gets all at once"),
            ("data-retract", "the rows of the window that were retracted"),
        )
    ),
]
REQUIRED = {
    **dict.fromkeys(("GroupAggregate", "GlobalGroupAggregate", "OverAggregate"), "accState"),
    **dict.fromkeys(("GroupWindowAggregate", *_SLICED.split()), "window-aggs"),
    "TemporalSort": "dataState",
    "PythonOverAggregate": "inputState",
}
"""The state without which there is no operator of a kind."""
