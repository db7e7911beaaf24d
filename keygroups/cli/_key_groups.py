"""The commands that answer from arguments alone: keys, key groups, subtasks and rescales."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

from keygroups import types
from keygroups._checks import check_int, check_max_parallelism, check_parallelisms
from keygroups.assignment import KeyTrace, trace_key
from keygroups.cli._key_text import CHOICES, check_text, parse_key, parse_key_type
from keygroups.cli._parser import HELP, AddCommand, to_int, to_number
from keygroups.cli._progress import progress_of
from keygroups.cli._streams import json_line, lines_of, of_each_line
from keygroups.errors import InvalidValueError, ParallelismError, printable
from keygroups.key_group_range import (
    KeyGroupRange,
    compute_default_max_parallelism,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
    compute_operator_indexes_for_key_group_range,
)
from keygroups.load import evenness
from keygroups.max_parallelism import suggest_max_parallelism
from keygroups.rescale import RescalePlan
from keygroups.skew import SubtaskCounts
from keygroups.subtask_keys import keys_for_subtasks
from keygroups.types import KeyType

if TYPE_CHECKING:
    from keygroups.job import VertexSkew
    from keygroups.reports import RescaleReport


def add_commands(command: AddCommand) -> None:
    """Add the commands."""
    key_types = f"the key type, one of {', '.join(CHOICES)}"
    add = command(_trace)
    add("key", metavar="KEY", help="the key, or - for standard input")
    for short, name in (("-m", "max_parallelism"), ("-p", "parallelism")):
        option = f"--{name.replace('_', '-')}"
        add(short, option, type=to_int, metavar="N", required=True, help=HELP[name])
    add("--type", help=key_types)
    add = command(_plan, "max_parallelism", "old_parallelism", "new_parallelism")
    add("--load", metavar="FILE", help="the load of the key groups, or - for standard input")
    add = command(_range, "max_parallelism")
    for name in ("parallelism", "subtask"):
        add(name, nargs="?", type=to_int, metavar=name.upper(), help=HELP[name])
    of_range = "say instead which subtasks have exactly the key groups from the first to the last"
    add("--key-groups", nargs=2, type=to_int, metavar="KEY_GROUP", help=of_range)
    add = command(_where)
    add("key_group", type=to_int, metavar="KEY_GROUP", help="a key group, from 0")
    add("max_parallelism", type=to_int, metavar="MAX_PARALLELISM", help=HELP["max_parallelism"])
    every = f"{HELP['parallelism']} (default: all at which every subtask has as many)"
    add("parallelism", nargs="?", type=to_int, metavar="PARALLELISM", help=every)
    add = command(_explain)
    add("text", metavar="TEXT", help="the text of an exception, or - for standard input")
    for short, name in (("-m", "max_parallelism"), ("-p", "parallelism")):
        add(short, f"--{name.replace('_', '-')}", type=to_int, metavar="N", help=HELP[name])
    command(_default, "parallelism")
    add = command(_keys, "max_parallelism", "parallelism")
    add("--type", help=f"{key_types} (default: INT)")
    add("--prefix", default="", metavar="TEXT", help="what a STRING begins with")
    add("-n", type=to_int, default=1, metavar="N", help="how many keys a subtask (default: 1)")
    first = "the number that the search starts at (default: 0)"
    add("--start", type=to_int, default=0, metavar="N", help=first)
    command(_evenness, "max_parallelism")
    add = command(_counts, "max_parallelism")
    add("file", metavar="FILE", help="the counts, or - for standard input")
    add = command(_suggest)
    each = "one that the job is to run with, or LOW-HIGH for all from one to another"
    add("parallelisms", type=_to_range, nargs="+", metavar="PARALLELISM", help=each)
    larger = "how many times the largest of them it may need one day (default: 1)"
    add("--growth", type=to_number, default=1, metavar="N", help=larger)


def _trace(options: argparse.Namespace) -> Iterator[str]:
    r"""Print every step from a key to its subtask.

    KEY is text; with --type it is read as that type: 42, true, 2024-02-29, 23:59:59.5,
    2024-02-29T23:59:59Z, or as Python writes tuples, lists, sets and dicts: ('a', 1). Without,
    it is a STRING, and refused if it may be something else, too. After -- it may begin with a
    dash. - reads keys from standard input, one a line: subtask, key group and key, in which what
    cannot be printed is escaped, a tab as \t; --json has it as it is.

    JSON: key (as given), key_type, hash_code, murmur_hash, max_parallelism, key_group,
    parallelism, subtask, key_groups (the subtask's first and last).
    """
    check_parallelisms(options.max_parallelism, options.parallelism)
    key_type = _key_type(options.type)

    def trace(text: str) -> KeyTrace:
        key = parse_key(text, key_type)
        return trace_key(key, options.max_parallelism, options.parallelism, key_type)

    if options.key != "-":
        traced = trace(options.key)
        yield json_line(_trace_data(options.key, traced)) if options.json else str(traced)
        return
    for text, traced in of_each_line(lines_of(options.key), trace):
        if options.json:
            yield json_line(_trace_data(text, traced))
        else:
            yield f"{traced.subtask}\t{traced.key_group}\t{printable(text)}"


def _trace_data(text: str, trace: KeyTrace) -> dict[str, Any]:
    """Return the JSON of every step from a key, which stays the text of the argument."""
    return {
        "key": text,
        "key_type": repr(trace.key_type),
        "hash_code": trace.hash_code,
        "murmur_hash": trace.murmur_hash,
        "max_parallelism": trace.max_parallelism,
        "key_group": trace.key_group,
        "parallelism": trace.parallelism,
        "subtask": trace.subtask,
        "key_groups": _range_data(trace.key_group_range),
    }


def _plan(options: argparse.Namespace) -> Iterator[str]:
    """Print the key groups that a rescale moves, and with --load better parallelisms.

    FILE has the load: a key group and its weight a line, key groups left out weighing 0; or a
    JSON array of the weight of every key group. - is standard input.

    JSON: max_parallelism, old_parallelism, new_parallelism, moved_key_groups, moved_share, pieces
    (each with old_subtask, new_subtask, key_groups and moves); with --load also moved_weight,
    moved_weight_share, weight_before and weight_after (of each subtask), imbalance_before,
    imbalance_after, skew_before and skew_after (each with diagnosis, remedy and causes, each of
    these with name, share and remedy), recommendations (the best first, each with parallelism,
    heaviest_weight, imbalance and reason).
    """
    plan = RescalePlan(options.max_parallelism, options.old_parallelism, options.new_parallelism)
    if options.load is None:
        yield json_line(_plan_data(plan)) if options.json else str(plan)
        return
    from keygroups.cli._load_file import read_load
    from keygroups.reports import RescaleReport

    report = RescaleReport(plan, read_load(options.load, plan.max_parallelism))
    yield json_line(rescale_data(report)) if options.json else str(report)


def _plan_data(plan: RescalePlan) -> dict[str, Any]:
    """Return the JSON of a rescale."""
    pieces = [
        {
            "old_subtask": piece.old_subtask,
            "new_subtask": piece.new_subtask,
            "key_groups": _range_data(piece.key_group_range),
            "moves": piece.moves,
        }
        for piece in plan
    ]
    return {
        "max_parallelism": plan.max_parallelism,
        "old_parallelism": plan.old_parallelism,
        "new_parallelism": plan.new_parallelism,
        "moved_key_groups": plan.moved_key_groups,
        "moved_share": plan.moved_share,
        "pieces": pieces,
    }


def rescale_data(report: RescaleReport) -> dict[str, Any]:
    """Return the JSON of a rescale with a load."""
    recommended = ("parallelism", "heaviest_weight", "imbalance", "reason")
    recommendations = [
        {name: getattr(ranked, name) for name in recommended} for ranked in report.recommendations
    ]
    names = (
        *("moved_weight", "moved_weight_share", "weight_before", "weight_after"),
        *("imbalance_before", "imbalance_after"),
    )
    measured = {name: getattr(report, name) for name in names}
    measured |= {
        "skew_before": skew_data(report.skew_before),
        "skew_after": skew_data(report.skew_after),
    }
    return _plan_data(report.plan) | measured | {"recommendations": recommendations}


def skew_data(skew: SubtaskCounts | VertexSkew) -> dict[str, Any]:
    """Return the JSON of a skew: diagnosis, remedy and causes."""
    causes = [cause._asdict() for cause in skew.causes]
    return {"diagnosis": skew.diagnosis, "remedy": skew.remedy, "causes": causes}


def _range(options: argparse.Namespace) -> Iterator[str]:
    """Print the key groups of a subtask, or the subtasks that have some key groups.

    With --key-groups a line of parallelism and subtask for each subtask that has exactly these.

    JSON: max_parallelism, parallelism, subtask, key_groups (the first and the last); with
    --key-groups max_parallelism, key_groups, subtasks (each with parallelism and subtask).
    """
    groups, parallelism, subtask = (
        getattr(options, name) for name in ("max_parallelism", "parallelism", "subtask")
    )
    if options.key_groups is not None:
        if parallelism is not None:
            raise InvalidValueError(
                f"parallelism must not go with --key-groups, got {parallelism}"
            )
        yield from _subtasks_of(groups, KeyGroupRange(*options.key_groups), options.json)
        return
    if subtask is None:
        raise InvalidValueError("parallelism and subtask, or --key-groups, must be given")
    check_parallelisms(groups, parallelism)
    check_int("subtask", subtask, 0, parallelism - 1)  # The core calls it operator_index.
    own = compute_key_group_range_for_operator_index(groups, parallelism, subtask)
    if options.json:
        numbers = {"max_parallelism": groups, "parallelism": parallelism, "subtask": subtask}
        yield json_line(numbers | {"key_groups": _range_data(own)})
    else:
        count = f"{len(own)} of {groups} key groups"
        yield f"subtask {subtask} of {parallelism} has {count}, {own}"


def _subtasks_of(groups: int, own: KeyGroupRange, as_json: bool) -> Iterator[str]:
    indexes = compute_operator_indexes_for_key_group_range(groups, own)
    if as_json:
        subtasks = [
            {"parallelism": parallelism, "subtask": subtask}
            for parallelism, subtask in indexes.items()
        ]
        data = {"max_parallelism": groups, "key_groups": _range_data(own), "subtasks": subtasks}
        yield json_line(data)
    elif indexes:
        yield from (f"subtask {subtask} of {count}" for count, subtask in indexes.items())
    else:
        yield f"no subtask has exactly {own} of {groups} key groups, at any parallelism"


def _where(options: argparse.Namespace) -> Iterator[str]:
    """Print the subtask that a key group belongs to.

    JSON: max_parallelism, key_group, subtasks (each with parallelism, subtask and its
    key_groups, the first and the last).
    """
    groups, key_group = options.max_parallelism, options.key_group
    check_max_parallelism(groups)
    check_int("key_group", key_group, 0, groups - 1)
    even = evenness(groups) if options.parallelism is None else [options.parallelism]
    subtasks = []
    for parallelism in even:
        subtask = compute_operator_index_for_key_group(groups, parallelism, key_group)
        own = compute_key_group_range_for_operator_index(groups, parallelism, subtask)
        subtasks.append((parallelism, subtask, own))
    if options.json:
        names = ("parallelism", "subtask", "key_groups")
        rows = [dict(zip(names, (*row[:2], _range_data(row[2])))) for row in subtasks]
        yield json_line({"max_parallelism": groups, "key_group": key_group, "subtasks": rows})
        return
    for parallelism, subtask, own in subtasks:
        yield f"subtask {subtask} of {parallelism}, which has key groups {own} of {groups}"


def _explain(options: argparse.Namespace) -> Iterator[str]:
    """Print the meaning of an exception of Flink about key groups or state, and what to do next.

    TEXT is the message or a whole stack trace. With -m and -p, the operator's max parallelism
    and parallelism, the answer names the subtask.

    JSON: matched (the message), says, causes, next_checks.
    """
    from keygroups.flink_exceptions import explain_exception

    text = "\n".join(lines_of("-")) if options.text == "-" else options.text
    explained = explain_exception(text, options.max_parallelism, options.parallelism)
    yield json_line(asdict(explained)) if options.json else str(explained)


def _range_data(groups: KeyGroupRange) -> list[int]:
    """Return the JSON of a range: its first key group and the last."""
    return [groups.start_key_group, groups.end_key_group]


def _default(options: argparse.Namespace) -> Iterator[str]:
    """Print the max parallelism of a fresh job that sets none.

    The parallelism is the one that is declared, in the job or the configuration. In reactive mode
    an operator without a declared one has 128, whatever number of subtasks runs.

    JSON: parallelism, max_parallelism.
    """
    groups = compute_default_max_parallelism(options.parallelism)
    data = {"parallelism": options.parallelism, "max_parallelism": groups}
    yield json_line(data) if options.json else str(groups)


def _keys(options: argparse.Namespace) -> Iterator[str]:
    r"""Print the first keys that Flink sends to each subtask, a line of subtask, tab and key.

    What cannot be printed of a prefix is escaped, a tab as \t; --json has it as it is.

    JSON: an array with an object for each subtask, of subtask and keys.
    """
    by_subtask = keys_for_subtasks(
        options.max_parallelism,
        options.parallelism,
        _key_type(options.type) or types.INT,
        options.n,
        prefix=check_text("prefix", options.prefix),
        start=options.start,
        progress=progress_of(options),
    )
    lists = by_subtask if options.n > 1 else [[key] for key in by_subtask]
    if options.json:
        yield json_line([{"subtask": subtask, "keys": keys} for subtask, keys in enumerate(lists)])
        return
    for subtask, keys in enumerate(lists):
        yield from (f"{subtask}\t{printable(str(key))}" for key in keys)


def _evenness(options: argparse.Namespace) -> Iterator[str]:
    """Print the parallelisms at which every subtask has as many key groups.

    JSON: max_parallelism, parallelisms.
    """
    even = evenness(options.max_parallelism)
    data = {"max_parallelism": options.max_parallelism, "parallelisms": even}
    yield json_line(data) if options.json else " ".join(map(str, even))


def _counts(options: argparse.Namespace) -> Iterator[str]:
    """Print why subtasks are uneven, from a count of each: records, bytes.

    FILE has a line for each subtask, its index and its count, or the table of the subtasks in
    Flink's web UI with its header, of which ID and Records Received are taken; or lines of
    Prometheus with the label subtask_index; or JSON, an array of counts from subtask 0, or of the
    metrics that Flink's REST API answers. - is standard input.

    JSON: max_parallelism, counts, imbalance, hot_subtasks, idle_subtasks, diagnosis, remedy and
    causes, each of these with name, share (in times the mean) and remedy.
    """
    from keygroups.cli._load_file import read_text

    check_max_parallelism(options.max_parallelism)
    text = read_text("counts", options.file)
    counts = SubtaskCounts.from_text(options.max_parallelism, text)
    if not options.json:
        yield str(counts)
        return
    names = ("max_parallelism", "counts", "imbalance", "hot_subtasks", "idle_subtasks")
    yield json_line({name: getattr(counts, name) for name in names} | skew_data(counts))


def _suggest(options: argparse.Namespace) -> Iterator[str]:
    """Print the max parallelisms that suit some parallelisms, the most even first.

    The first is the smallest that all of them divide, where there is one. Each one below it has
    fewer key groups, and at worst more of them in one subtask than in the mean one.

    JSON: parallelisms, lowest (which the growth needs), default (Flink's own, for the largest) and
    suggestions, each of these with max_parallelism, imbalance (at worst), parallelism (where, null
    if nowhere), metadata_bytes and hashmap_bytes (what the key groups take in each savepoint, and
    besides in a checkpoint of the hashmap backend, of one state).
    """
    for numbers in options.parallelisms:
        if not numbers:
            first, last = numbers.start, numbers.stop - 1
            raise ParallelismError(f"parallelism {first} must be at most {last}, the last one")
    wanted = chain.from_iterable(options.parallelisms)
    found = suggest_max_parallelism(wanted, options.growth)
    if not options.json:
        yield str(found)
        return
    default = found.default._asdict() if found.default else None
    data = {"parallelisms": found.parallelisms, "lowest": found.lowest, "default": default}
    yield json_line(data | {"suggestions": [ranked._asdict() for ranked in found]})


def _to_range(text: str) -> range:
    """Return the numbers of an argument, N or LOW-HIGH, with unchecked bounds."""
    low, dash, high = text.partition("-")
    first = to_int(low)
    return range(first, (to_int(high) if dash else first) + 1)


def _key_type(text: str | None) -> KeyType | None:
    return None if text is None else parse_key_type(text)
