"""What the command prints with `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keygroups.assignment import KeyTrace
    from keygroups.job import Vertex, VertexSkew
    from keygroups.key_group_range import KeyGroupRange
    from keygroups.reports import RescaleReport
    from keygroups.rescale import RescalePlan
    from keygroups.savepoint import OperatorReport, RewriteReport, Savepoint


def range_data(groups: KeyGroupRange) -> list[int]:
    """Return the first key group and the last."""
    return [groups.start_key_group, groups.end_key_group]


def trace_data(text: str, trace: KeyTrace) -> dict[str, Any]:
    """Return every step from a key, which is told as it was given."""
    return {
        "key": text,
        "key_type": repr(trace.key_type),
        "hash_code": trace.hash_code,
        "murmur_hash": trace.murmur_hash,
        "max_parallelism": trace.max_parallelism,
        "key_group": trace.key_group,
        "parallelism": trace.parallelism,
        "subtask": trace.subtask,
        "key_groups": range_data(trace.key_group_range),
    }


def plan_data(plan: RescalePlan) -> dict[str, Any]:
    """Return what a rescale moves."""
    pieces = [
        {
            "old_subtask": piece.old_subtask,
            "new_subtask": piece.new_subtask,
            "key_groups": range_data(piece.key_group_range),
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
    """Return what a rescale moves, with a load."""
    recommended = ("parallelism", "heaviest_weight", "imbalance", "reason")
    recommendations = [
        {name: getattr(one, name) for name in recommended} for one in report.recommendations
    ]
    names = (
        *("moved_weight", "moved_weight_share", "weight_before", "weight_after"),
        *("imbalance_before", "imbalance_after"),
    )
    measured = {name: getattr(report, name) for name in names}
    return plan_data(report.plan) | measured | {"recommendations": recommendations}


def savepoint_data(savepoint: Savepoint) -> dict[str, Any]:
    """Return the operators of a savepoint."""
    names = ("operator_id", "uid", "name", "parallelism", "max_parallelism")
    operators = [
        {
            **{name: getattr(one, name) for name in names},
            "bytes": sum(subtask.bytes for subtask in one.subtasks),
        }
        for one in savepoint.operators
    ]
    head = ("path", "kind", "version", "checkpoint_id")
    return {name: getattr(savepoint, name) for name in head} | {"operators": operators}


def report_data(report: OperatorReport) -> dict[str, Any]:
    """Return the keyed state of an operator."""
    from keygroups.savepoint._state.header import exact_state

    keys = [
        # Text and numbers are as JSON has them, any other key as Python shows it.
        one._asdict() | {"key": one.key if isinstance(one.key, (str, int)) else repr(one.key)}
        for one in report.heaviest_keys
    ]
    return {
        "operator_id": report.operator.operator_id,
        "states": [exact_state(state) for state in report.operator.states],
        "key_group_bytes": report.key_group_bytes.weights,
        "heaviest_key_groups": report.heaviest_key_groups,
        "heaviest_keys": keys,
        "unknown_keys": report.unknown_keys,
        "rescale": rescale_data(report.rescale),
    }


def rewrite_data(report: RewriteReport) -> dict[str, Any]:
    """Return what was written of a savepoint."""
    operators = [
        vars(one) | {"states": [state._asdict() for state in one.states]}
        for one in report.operators
    ]
    return {"path": report.path, "operators": operators}


def vertex_data(vertex: Vertex, skew: VertexSkew | None) -> dict[str, Any]:
    """Return what the subtasks of a vertex have read."""
    names = ("vertex_id", "name", "status", "parallelism", "max_parallelism", "is_keyed")
    said = ("imbalance", "hot_subtasks", "idle_subtasks", "diagnosis", "remedy")
    return {name: getattr(vertex, name) for name in names} | {
        "subtasks": [one._asdict() for one in vertex.subtasks],
        "skew": None if skew is None else {name: getattr(skew, name) for name in said},
    }
