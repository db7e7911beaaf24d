"""Explanations of Flink's exceptions about key groups, parallelism or state.

`explain_exception` takes the text of a log, as it was copied. The texts are those of Flink's
classes, which are named beside each pattern; they are the same from 1.13 to 2.3 where no
version is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from keygroups._checks import (
    UPPER_BOUND_MAX_PARALLELISM,
    check_max_parallelism,
    check_parallelism,
    check_str,
    show,
)
from keygroups.errors import InvalidValueError, printable
from keygroups.key_group_range import (
    KeyGroupRange,
    compute_default_max_parallelism,
    compute_operator_index_for_key_group,
    compute_operator_indexes_for_key_group_range,
)

__all__ = ["ExplainedException", "explain_exception"]
__dir__ = __all__.copy

_SHOWN = 6  # subtasks in a text
_DEFAULTS = [1 << power for power in range(7, 16)]  # max parallelisms that Flink derives itself
_LONGEST_NAME = 200  # characters of a name or of a serializer in a text


@dataclass(frozen=True)
class ExplainedException:
    """An explained exception of Flink; `str()` is the text for a person.

    `matched` is the part of the text that was understood. The others are sentences: the meaning
    in `says`, the `causes`, the likeliest first, and the `next_checks` to do.
    """

    matched: str
    says: tuple[str, ...]
    causes: tuple[str, ...]
    next_checks: tuple[str, ...]

    def __str__(self) -> str:
        lines = list(self.says)
        for title, listed in (("causes", self.causes), ("next", self.next_checks)):
            lines.append(f"{title}, the likeliest first:" if title == "causes" else f"{title}:")
            lines += [f"  {number}. {text}" for number, text in enumerate(listed, 1)]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Job:
    """The max parallelism and parallelism of the operator, as far as the caller knows them."""

    max_parallelism: int | None
    parallelism: int | None

    def options(self) -> str:
        """Return the options of the command `trace`, an unknown one in capitals."""
        return f"-m {self.max_parallelism or 'MAX'} -p {self.parallelism or 'PARALLELISM'}"


_Texts = tuple[Sequence[str], Sequence[str], Sequence[str]]  # words, causes, next checks
_Explain = Callable[[re.Match[str], _Job], _Texts]


def explain_exception(
    text: str, max_parallelism: int | None = None, parallelism: int | None = None
) -> ExplainedException:
    r"""Explain an exception of Flink about key groups, parallelism or state.

    `text` is the message or a whole stack trace; the first message in it that is known is
    explained. `max_parallelism` and `parallelism` are those of the operator, if they are known:
    1 <= parallelism <= max_parallelism <= 32768. Without a max parallelism the one is looked at
    that Flink derives from each parallelism for a job that sets none.

    Raises InvalidTypeError and ParallelismError for the arguments, and InvalidValueError for a
    text without a message that is known, which lists these.

    >>> text = "Key group 193 is not in KeyGroupRange{startKeyGroup=144, endKeyGroup=179}."
    >>> print("\n".join(explain_exception(text, 720).says))
    a record or timer of key group 193 came to a subtask that has the key groups [144, 179]
    at max parallelism 720 that is subtask 4 of 20; key group 193 belongs to subtask 5
    """
    check_str("text", text)
    if max_parallelism is not None:
        max_parallelism = check_max_parallelism(max_parallelism)
    if parallelism is not None:
        most = UPPER_BOUND_MAX_PARALLELISM if max_parallelism is None else max_parallelism
        parallelism = check_parallelism(parallelism, most)
    job = _Job(max_parallelism, parallelism)
    matches = (
        (match, explain)
        for pattern, explain in _PATTERNS
        if (match := re.search(pattern, text)) is not None
    )
    first = min(matches, key=lambda known: known[0].start(), default=None)
    if first is None:
        raise InvalidValueError(
            f"text must have a message of Flink that is known, got {show(text)}: known are "
            f"{'; '.join(_KNOWN)}"
        )
    match, explain = first
    says, causes, checks = explain(match, job)
    return ExplainedException(match[0], tuple(says), tuple(causes), tuple(checks))


_KNOWN = (
    "'Key group 91 is not in KeyGroupRange{...}' and what older and other classes say for it",
    "'Cannot map checkpoint/savepoint state for operator ...'",
    "'Max parallelism mismatch between checkpoint/savepoint state and new program'",
    "'The maximum parallelism (128) of the restored state is lower than ...'",
    "'The maximum parallelism (128) with which the latest checkpoint ... changed'",
    "'The new key serializer (...) must be compatible with ...' and the others of state",
    "a max parallelism out of bounds, or below the parallelism",
    "'Assigned key must not be null!'",
)


# --- a key group in the wrong subtask -------------------------------------------------------

_UNSTABLE = (
    "the key selector gives another key when it is called again: it has a random number, the "
    "time, a counter or an object of its own in it (Flink calls it when it sends a record and "
    "when it receives it)",
    "the key's hashCode is not the same in every JVM: an enum, an array, a protobuf message, or "
    "a class without a hashCode of its own, inside a tuple, a row or a POJO too",
    "the key is changed after keyBy: an object that is reused or modified, with object reuse on "
    "or by the selector's caller",
    "reinterpretAsKeyedStream over a stream that is not partitioned as keyBy would do it",
    "the state was written under another max parallelism, or edited by a tool that does not "
    "hash as Flink does",
)


def _checks_of_a_key(key_group: int | None, job: _Job) -> tuple[str, ...]:
    group = "one that the subtask does not have" if key_group is None else str(key_group)
    return (
        f"keygroups trace KEY {job.options()} --type TYPE, for the key of the record: if its key "
        f"group is {group}, the record was sent to the wrong subtask; if not, the key's hash or "
        "its selector is not stable",
        "infer_routing(key_groups=[(key, key group), ...]), for pairs from a log, finds the key "
        "type and max parallelism that explain them, and none if the hash is not stable",
        "infer_routing([(key, subtask), ...], parallelism) does so by the subtasks of keys",
        "help(keygroups.types) lists keys that no tool can place, and what to key by instead",
    )


def _misplaced(key_group: int | None, groups: KeyGroupRange, job: _Job) -> _Texts:
    origin = "" if key_group is None else f"of key group {key_group} "
    says = [f"a record or timer {origin}came to a subtask that has the key groups {groups}"]
    says += _places(key_group, groups, job)
    return says, _UNSTABLE, _checks_of_a_key(key_group, job)


def _places(key_group: int | None, groups: KeyGroupRange, job: _Job) -> Iterator[str]:
    """Yield a line for each job in which one subtask has exactly these key groups.

    It names that subtask, and the one to which the stray key group belongs.
    """
    lowest = max(groups.end_key_group, key_group or 0) + 1
    set_by_job = job.max_parallelism
    if set_by_job is not None and set_by_job < lowest:
        yield f"which max parallelism {set_by_job} does not have: it is {lowest} at least"
        return
    places = [
        (max_parallelism, parallelism, subtask)
        for max_parallelism in (_DEFAULTS if set_by_job is None else [set_by_job])
        if max_parallelism >= lowest
        for parallelism, subtask in compute_operator_indexes_for_key_group_range(
            max_parallelism, groups
        ).items()
        if job.parallelism in (None, parallelism)
        if max_parallelism == (set_by_job or compute_default_max_parallelism(parallelism))
    ]
    if not places:
        subtask = "no subtask" if job.parallelism is None else f"no subtask of {job.parallelism}"
        known = "of a job that sets none" if set_by_job is None else set_by_job
        yield f"{subtask} has exactly these at the max parallelism {known}"
    yield from (_place(*place, key_group) for place in places[:_SHOWN])
    if len(places) > _SHOWN:
        more = f"and {len(places) - _SHOWN:,} more"
        yield f"{more}: the job's max parallelism and parallelism decide"


def _place(max_parallelism: int, parallelism: int, subtask: int, key_group: int | None) -> str:
    text = f"at max parallelism {max_parallelism} that is subtask {subtask} of {parallelism}"
    if key_group is None:
        return text
    own = compute_operator_index_for_key_group(max_parallelism, parallelism, key_group)
    return f"{text}; key group {key_group} belongs to subtask {own}"


def _not_in_range(match: re.Match[str], job: _Job) -> _Texts:
    key_group, first, last = map(int, match.groups())
    return _misplaced(key_group, _range_of(match, first, last), job)


def _not_in_interval(match: re.Match[str], job: _Job) -> _Texts:
    first, behind = map(int, match.groups())
    return _misplaced(None, _range_of(match, first, behind - 1), job)


def _not_in_queue(match: re.Match[str], job: _Job) -> _Texts:
    first, behind, key_group = map(int, match.groups())
    return _misplaced(key_group, _range_of(match, first, behind - 1), job)


def _range_of(match: re.Match[str], first: int, last: int) -> KeyGroupRange:
    try:
        return KeyGroupRange(first, last)
    except InvalidValueError as error:
        raise InvalidValueError(f"text must name key groups, got {show(match[0])}") from error


def _not_local(match: re.Match[str], job: _Job) -> _Texts:
    key_group = int(match[1])
    says = [f"a timer of key group {key_group} came to a subtask that does not have this one"]
    if job.max_parallelism is not None and job.parallelism is not None:
        if key_group >= job.max_parallelism:
            says.append(f"which max parallelism {job.max_parallelism} does not have")
        else:
            own = compute_operator_index_for_key_group(
                job.max_parallelism, job.parallelism, key_group
            )
            says.append(f"it belongs to subtask {own} of {job.parallelism}")
    return says, _UNSTABLE, _checks_of_a_key(key_group, job)


def _out_of_array(match: re.Match[str], job: _Job) -> _Texts:
    offset = int(match[1])
    side = (
        f"{-offset} below the first key group of the subtask"
        if offset < 0
        else f"{offset} above the first key group of the subtask, and not one of its own"
    )
    says = [f"a record or timer came to a subtask that does not have its key group: it is {side}"]
    if match[2] is not None:
        says.append(f"the subtask has {int(match[2])} key groups")
    return says, _UNSTABLE, _checks_of_a_key(None, job)


# --- restores -------------------------------------------------------------------------------


def _name(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 3]}..."


def _cannot_map(match: re.Match[str], job: _Job) -> _Texts:
    path, operator = map(_name, match.groups())
    return (
        (
            f"the savepoint has state of operator {operator}, and no operator of the new job has "
            "that id",
        ),
        (
            "the operator has no uid, so its id is a hash of the job's graph, which changed",
            "its uid was changed, or the operator was removed from the job",
            "the savepoint is of another job",
        ),
        (
            f"keygroups savepoint {path} lists the operators; with --uids FILE, a uid a line, it "
            "says which uid has that id",
            "SavepointWriter.from_existing_savepoint(OLD, NEW).change_operator_identifier(ID, "
            "UID) gives the state to the operator of that uid, --rename-operator in a shell",
            "flink run --allowNonRestoredState drops this state for good",
        ),
    )


_OTHER_MAX = (
    "the job sets another max parallelism than the one the savepoint was written under",
    "the job sets none: Flink then derives it from the parallelism of the vertex (128 up to a "
    "parallelism of 85, then 256 up to 170, and so on), and the parallelism was changed",
    "operators were chained otherwise: all that are chained have one max parallelism",
)


def _change(old: int) -> tuple[str, ...]:
    return (
        f"env.setMaxParallelism({old}), or .setMaxParallelism({old}) on the operator, is what the "
        "savepoint restores with",
        "keygroups savepoint PATH --set-max-parallelism N --output NEW writes the savepoint anew "
        "for another one, change_max_parallelism in Python",
    )


def _mismatch(match: re.Match[str], job: _Job) -> _Texts:
    operator, old, new = _name(match[1]), int(match[2]), int(match[3])
    says = f"operator {operator} was written at max parallelism {old}, and the job has {new}"
    return (says,), _OTHER_MAX, _change(old)


def _changed(match: re.Match[str], job: _Job) -> _Texts:
    old, vertex, new = int(match[1]), _name(match[2]), int(match[3])
    says = f"{vertex} was written at max parallelism {old}, and the job has {new}"
    return (says,), _OTHER_MAX, _change(old)


def _lower(match: re.Match[str], job: _Job) -> _Texts:
    task, old, parallelism = _name(match[1]), int(match[2]), int(match[3])
    says = (
        f"the state of {task} has {old} key groups, and {parallelism} subtasks would share them: "
        "one key group is the least that a subtask can have",
    )
    return (
        says,
        ("the job was scaled beyond the max parallelism of its state",),
        (
            f"a parallelism of at most {old} restores; at {old} every subtask has one key group",
            "keygroups savepoint PATH --set-max-parallelism N --output NEW gives the state more "
            f"key groups, for a parallelism of {parallelism} at least {parallelism}",
        ),
    )


# --- serializers and bounds -----------------------------------------------------------------


def _incompatible(match: re.Match[str], job: _Job) -> _Texts:
    subject = match[1]
    says = f"the {subject} serializer of the job cannot read what the savepoint has"
    causes = (
        "the class of the value was changed beyond what its serializer migrates: a POJO's fields "
        "may come and go but not change their type, Avro follows its own rules, Kryo nothing",
        "the type is another one: a generic type that Kryo serializes now, or no longer",
    )
    if "key" in subject:
        causes = ("the key type of the job was changed: keys are never migrated", *causes[1:])
    checks = (
        "keygroups restore PATH NEW, with a savepoint of the new job, names each state that Flink "
        "refuses, the field and the rule",
        "keygroups savepoint PATH prints the serializer that each state was written with; "
        "FORMAT.md of keygroups.savepoint has what Flink checks for each",
        "state of another type can be written anew: SavepointWriter.from_existing_savepoint, "
        "whose remove_state drops the old one, or new state in SavepointWriter",
    )
    return (says,), causes, checks


def _out_of_bounds(match: re.Match[str], job: _Job) -> _Texts:
    says = f"a max parallelism is from 1 to {UPPER_BOUND_MAX_PARALLELISM}, and {match[1]} is not"
    checks = ("set one in these bounds: a power of two is no better than another number",)
    return (says,), ("the job or its configuration sets it",), checks


def _vertex_too_wide(match: re.Match[str], job: _Job) -> _Texts:
    parallelism, most = map(int, match.groups())
    says = f"the vertex has a parallelism of {parallelism} and a max parallelism of {most}"
    checks = (
        f"lower the parallelism: at {most} every subtask has one key group",
        f"or set a max parallelism of at least {parallelism}; state that was written at {most} "
        "has to be written anew for it: keygroups savepoint PATH --set-max-parallelism N",
    )
    causes = ("the parallelism was raised above the max parallelism that is set",)
    return (says,), causes, checks


def _null_key(match: re.Match[str], job: _Job) -> _Texts:
    says = "the key selector returned null, which Flink cannot send anywhere"
    causes = ("a field that the key is made of is null in some record",)
    checks = ("filter such records out before keyBy, or give them a key of their own",)
    return (says,), causes, checks


_PATTERNS: tuple[tuple[str, _Explain], ...] = (
    # KeyGroupRangeOffsets.newIllegalKeyGroupException, with KeyGroupRange.toString.
    (
        r"Key group (\d{1,9}) is not in "
        r"KeyGroupRange\{startKeyGroup=(\d{1,9}), endKeyGroup=(\d{1,9})\}",
        _not_in_range,
    ),
    # StateTable.setMapForKeyGroup, until Flink 1.13.
    (
        r"Key group index out of range of key group range \[(\d{1,9}), (\d{1,9})\)",
        _not_in_interval,
    ),
    # KeyGroupPartitionedPriorityQueue.globalKeyGroupToLocalIndex.
    (r"key group from (\d{1,9}) to (\d{1,9}) does not contain (\d{1,9})", _not_in_queue),
    # InternalTimerServiceImpl.restoreTimersForKeyGroup.
    (r"Key Group (\d{1,9}) does not belong to the local range", _not_local),
    # An access of StateTable without a check, by the frames that follow the exception.
    (
        r"ArrayIndexOutOfBoundsException: (?:Index )?(-?\d{1,9})"
        r"(?: out of bounds for length (\d{1,9}))?\s{1,9}"
        r"at org\.apache\.flink\.runtime\.state\.(?:heap\.|KeyGroupRange)",
        _out_of_array,
    ),
    # Checkpoints.throwNonRestoredStateException.
    (
        r"Failed to rollback to checkpoint/savepoint (\S{1,999})\. Cannot map "
        r"checkpoint/savepoint state for operator (\S{1,99}) to",
        _cannot_map,
    ),
    # Checkpoints.loadAndValidateCheckpoint.
    (
        r"Max parallelism mismatch between checkpoint/savepoint state and new program\. "
        r"Cannot map operator (\S{1,99}) with max parallelism (\d{1,9}) to new program with "
        r"max parallelism (\d{1,9})",
        _mismatch,
    ),
    # StateAssignmentOperation.checkParallelismPreconditions, both.
    (
        r"The state for task (\S{1,99}) can not be restored\. The maximum parallelism "
        r"\((\d{1,9})\) of the restored state is lower than the configured parallelism "
        r"\((\d{1,9})\)",
        _lower,
    ),
    (
        r"The maximum parallelism \((\d{1,9})\) with which the latest checkpoint of the "
        r"execution job vertex (\S{1,199}) has been taken and the current maximum "
        r"parallelism \((\d{1,9})\) changed",
        _changed,
    ),
    # The restore operations and backends, and DefaultOperatorStateBackend.
    (r"[Tt]he new (key|namespace|state) serializer \(", _incompatible),
    (r"[Tt]he new (priority queue) serializer must not be incompatible", _incompatible),
    (
        r"The new (key|state|value) typeSerializer for (?:broadcast|operator) state",
        _incompatible,
    ),
    # StreamExecutionEnvironment, OperatorValidationUtils and DefaultVertexParallelismInfo.
    (
        r"maxParallelism is out of bounds 0 < maxParallelism <= 32768\. Found: (-?\d{1,10})",
        _out_of_bounds,
    ),
    (
        r"Maximum parallelism must be between 1 and \d{1,9}\. Found: (-?\d{1,10})",
        _out_of_bounds,
    ),
    (
        r"Setting [\w ]{1,40} is not in valid bounds \(1\.\.\d{1,9}\), "
        r"found: (-?\d{1,10})",
        _out_of_bounds,
    ),
    # ExecutionJobVertex.
    (
        r"'s parallelism \((\d{1,9})\) is higher than the max parallelism "
        r"\((\d{1,9})\)",
        _vertex_too_wide,
    ),
    # KeyGroupRangeAssignment.assignToKeyGroup.
    (r"Assigned key must not be null", _null_key),
)
