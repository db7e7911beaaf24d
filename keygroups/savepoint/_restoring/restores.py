"""Operators of a savepoint beside those of the job that is to restore it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from keygroups._checks import check_str, show
from keygroups._serializers.base import Serializer
from keygroups._serializers.compatibility import (
    AFTER_MIGRATION,
    AS_IS,
    INCOMPATIBLE,
    UNKNOWN,
    Finding,
    classes_of,
    of_classes,
    resolve,
    resolve_unregistered,
    worst,
)
from keygroups.errors import InvalidTypeError
from keygroups.savepoint._comparison.compare import operator_states
from keygroups.savepoint._comparison.states import ONLY, OperatorState
from keygroups.savepoint._metadata.handles import operator_id_of
from keygroups.savepoint._operator import Operator, bytes_of
from keygroups.savepoint._state.header import StateDescriptor, stored_state
from keygroups.savepoint._state.writing.new_states import described_states, operator_key_to_write
from keygroups.savepoint.restoring import OperatorRestore, StateRestore

_TTL_CONVERTED = 6
"""Version of `_metadata` from which Flink surely converts state with and without a TTL."""
_DECLARED = 6  # the version of the newest Flink
_FLINK_2 = 5  # the first version of `_metadata` of Flink 2
_CANDIDATES = 3
_ONLY_HERE, _ONLY_THERE = ONLY
_KEPT = "the job does not register it: Flink keeps it, and nobody reads it"
Classes = Mapping[str, Serializer | None]
_ROLES = {"KEY_SERIALIZER": "key", "VALUE_SERIALIZER": "value"}
_DROP = "remove_state drops it"


@dataclass(frozen=True)
class JobOperator:
    """An operator of the job: its states as they are in files, and its max parallelism if known.

    `version` is that of the `_metadata` that the job's Flink writes.
    """

    label: str
    operator_id: str
    states: tuple[StateDescriptor, ...]
    others: tuple[OperatorState, ...]
    max_parallelism: int | None
    version: int

    @classmethod
    def of(cls, operator: Operator, version: int, number: int) -> JobOperator:
        """Return the operator of a savepoint; `number` is 0 for the older one, else 1."""
        states = tuple(map(stored_state, operator.states))
        others = tuple(operator_states(number, operator))
        names = operator.label, operator.operator_id
        return cls(*names, states, others, operator.max_parallelism, version)

    def classes(self) -> Iterator[tuple[str, Serializer | None]]:
        """Yield the classes that are named in its serializers, which the job has.

        Each has its serializer where that is known.
        """
        for serializer in self._serializers():
            yield from ((name, None) for name in classes_of(serializer))
        for serializer in self._serializers():
            yield from of_classes(serializer)

    def _serializers(self) -> Iterator[Serializer]:
        for state in self.states:
            yield from _serializers_of(state)
        for other in self.others:
            yield from other.serializers.values()


def _serializers_of(state: StateDescriptor) -> Iterator[Serializer]:
    parts = (state.key_serializer, state.namespace_serializer)
    for part in (*parts, state.user_key_serializer, state.value_serializer):
        if part is not None:
            yield part


def has_state(operator: Operator) -> bool:
    """Return whether an operator has state, without which Flink skips one that the job lacks."""
    return bool(bytes_of(operator)) or operator.coordinator_state() is not None


def declared_operators(operators: Sequence[Operator], job: object) -> list[JobOperator]:
    """Return the operators of a job that is declared by their keys and states, or raise."""
    if not isinstance(job, Mapping):
        raise InvalidTypeError(
            "job must be a Savepoint, or map operators to a key type and descriptors, got "
            f"{show(job)}"
        )
    made = []
    for name, declared in job.items():
        uid = check_str("operator in job", name)
        if not isinstance(declared, tuple) or len(declared) != 2:
            raise InvalidTypeError(
                f"job must have a key type and descriptors for {show(uid)}, got {show(declared)}"
            )
        key = operator_key_to_write(declared[0])
        states = tuple(map(stored_state, described_states(declared[1], key)))
        names = [
            operator for operator in operators if uid in (operator.name, operator.operator_id)
        ]
        operator_id = names[0].operator_id if len(names) == 1 else operator_id_of(uid)
        made.append(JobOperator(uid, operator_id, states, (), None, _DECLARED))
    return made


def restores(
    olds: Sequence[JobOperator], news: Sequence[JobOperator]
) -> Iterator[OperatorRestore]:
    """Yield an OperatorRestore for each operator of both, those that only the job has last."""
    by_id = {new.operator_id: new for new in news}
    known = dict(each for new in news for each in new.classes())
    free = [new for new in news if new.operator_id not in {old.operator_id for old in olds}]
    for old in olds:
        new = by_id.get(old.operator_id)
        yield _unmatched(old, free) if new is None else _matched(old, new, known)
    for new in free:
        names = new.label, new.operator_id
        yield OperatorRestore(*names, _ONLY_THERE, (), "", (), AS_IS)


def _unmatched(old: JobOperator, free: Sequence[JobOperator]) -> OperatorRestore:
    reason = "the job has no operator of this id: Flink refuses its state, or drops it"
    names = {state.name for state in old.states} | {other.key[0] for other in old.others}
    alike = [
        new.label
        for new in free
        if names & {*(state.name for state in new.states), *(other.key[0] for other in new.others)}
    ]
    alike += get_close_matches(old.label, [new.label for new in free], _CANDIDATES)
    candidates = [*dict.fromkeys(alike)][:_CANDIDATES]
    remedy = f"remove_operator({show(old.label)}) drops its state"
    if candidates:
        asked = " or ".join(map(show, candidates))
        rename = f"change_operator_identifier({show(old.label)}, ...) gives it the uid {asked}"
        remedy = f"{rename}; {remedy}"
    identity = old.label, old.operator_id
    return OperatorRestore(*identity, _ONLY_HERE, (reason,), remedy, (), INCOMPATIBLE)


def _matched(old: JobOperator, new: JobOperator, known: Classes) -> OperatorRestore:
    findings, remedies = [*_keys(old, new, known)], []
    if findings:
        remedies.append("map_keys(function, key_type) gives it keys of another type")
    if new.max_parallelism not in (None, old.max_parallelism) and old.states:
        reason = (
            f"max parallelism {old.max_parallelism} is {new.max_parallelism} in the job, which "
            "Flink refuses if the job sets it"
        )
        findings.append(Finding(UNKNOWN, "", reason))
        remedies.append(f"set_max_parallelism({new.max_parallelism}) writes it anew")
    states = (*_keyed(old, new, known), *_operator_states(old, new, known))
    names = new.label, new.operator_id
    reasons, remedy = tuple(map(str, findings)), "; ".join(remedies)
    return OperatorRestore(*names, None, reasons, remedy, states, worst(findings))


def _keys(old: JobOperator, new: JobOperator, known: Classes) -> Iterator[Finding]:
    """Yield a Finding for each difference of the keys, which Flink never migrates."""
    for one, other in zip(old.states[:1], new.states[:1]):
        yield from _strict(resolve(one.key_serializer, other.key_serializer, known, "keys"))


def _strict(findings: Iterable[Finding]) -> Iterator[Finding]:
    for verdict, place, reason in findings:
        is_refused = verdict == AFTER_MIGRATION
        more = ", and Flink migrates no keys and namespaces" if is_refused else ""
        yield Finding(INCOMPATIBLE if is_refused else verdict, place, reason + more)


# --- states ---------------------------------------------------------------------------------


def _keyed(old: JobOperator, new: JobOperator, known: Classes) -> Iterator[StateRestore]:
    own, others = ({state.name: state for state in side.states} for side in (old, new))
    for name in {**own, **others}:
        if name not in others:
            yield _gone(own[name], [state for state in new.states if state.name not in own], known)
        elif name not in own:
            yield StateRestore(name, others[name].kind, _ONLY_THERE, AS_IS, (), "")
        else:
            yield _state(own[name], others[name], known, new.version)


def _gone(old: StateDescriptor, free: Sequence[StateDescriptor], known: Classes) -> StateRestore:
    """Return a state that the job does not register, with those it may be by now."""
    alike = [show(new.name) for new in free if new.kind == old.kind and not _values(old, new, {})]
    remedy = _DROP
    if alike and old.value_serializer is not None:
        remedy = f"rename_state gives it the name {' or '.join(alike[:_CANDIDATES])}; {remedy}"
    return _kept(old.name, old.kind, remedy, _serializers_of(old), known)


def _kept(
    name: str, kind: str, remedy: str, serializers: Iterable[Serializer], known: Classes
) -> StateRestore:
    """Return a state that Flink restores and keeps, if it still makes its serializers."""
    findings = [each for part in serializers for each in resolve_unregistered(part, known)]
    reasons = (_KEPT, *dict.fromkeys(map(str, findings)))
    return StateRestore(name, kind, _ONLY_HERE, worst(findings), reasons, remedy)


def _state(
    old: StateDescriptor, new: StateDescriptor, known: Classes, version: int
) -> StateRestore:
    if old.kind != new.kind:
        reasons = (f"the kind {old.kind} is {new.kind}",)
        return StateRestore(old.name, new.kind, None, INCOMPATIBLE, reasons, _DROP)
    namespaces = old.namespace_serializer, new.namespace_serializer
    findings = [*_strict(resolve(*namespaces, known, "namespaces"))]
    values = _values(old, new, known)
    is_converted = not findings and bool(values) and _is_convertible(old, new)
    findings += [*values, *_of_user_keys(old, new, known, values)]
    is_ttl = old.has_ttl != new.has_ttl
    if is_ttl:
        findings.append(_of_ttl(old, version))
    verdict = worst(findings)
    remedy = ""
    if verdict in (UNKNOWN, INCOMPATIBLE):
        remedy = _DROP
        if is_converted:
            convert = f"convert_state({show(old.name)}, to, value) writes it anew"
            remedy = f"{convert}; {remedy}"
        if is_ttl:
            remedy = f"set_ttl({show(old.name)}, {new.has_ttl}) converts it; {remedy}"
    return StateRestore(old.name, new.kind, None, verdict, tuple(map(str, findings)), remedy)


def _is_convertible(old: StateDescriptor, new: StateDescriptor) -> bool:
    """Tell whether `convert_state` writes the values of one state as those of another."""
    read, written = old.value_serializer, new.value_serializer
    return (
        old.user_key_serializer == new.user_key_serializer
        and read is not None
        and written is not None
        and read.read is not None
        and written.write is not None
    )


def _values(old: StateDescriptor, new: StateDescriptor, known: Classes) -> list[Finding]:
    """Return a Finding for each difference of user keys and values, of two states of one kind."""
    findings: list[Finding] = []
    for name in ("user_key", "value"):
        part, other = (getattr(state, f"{name}_serializer") for state in (old, new))
        if part is not None and other is not None:
            findings += resolve(part, other, known, name.replace("_", " "))
    return findings


def _of_user_keys(
    old: StateDescriptor, new: StateDescriptor, known: Classes, values: list[Finding]
) -> Iterator[Finding]:
    """Yield that RocksDB migrates the values of maps, but where their keys are as they were.

    Flink: RocksDBKeyedStateBackend.migrateStateValues.
    """
    if old.user_key_serializer is None or new.user_key_serializer is None:
        return
    keys = worst([*resolve(old.user_key_serializer, new.user_key_serializer, known)])
    if worst(values) == AFTER_MIGRATION and keys != AS_IS:
        reason = "RocksDB migrates no map whose keys changed, the hashmap backend does"
        yield Finding(UNKNOWN, "user key", reason)


def _of_ttl(old: StateDescriptor, version: int) -> Finding:
    """Return the verdict about a time to live in one of both.

    Flink: TtlAwareSerializerSnapshot, which is not in Flink 1.
    """
    if version < _FLINK_2:
        verdict, what = INCOMPATIBLE, "which Flink 1 refuses"
    elif version < _TTL_CONVERTED:
        verdict, what = UNKNOWN, "which Flink 2.0 refuses, and 2.3 converts"
    else:
        verdict, what = AFTER_MIGRATION, "which Flink converts"
    return Finding(verdict, "", f"it {'loses its' if old.has_ttl else 'gets a'} TTL, {what}")


def _operator_states(old: JobOperator, new: JobOperator, known: Classes) -> Iterator[StateRestore]:
    """Yield the list, union and broadcast states of both."""
    own, others = ({state.key: state for state in side.others} for side in (old, new))
    for key in {**own, **others}:
        shown, name = own.get(key) or others[key], key[0]
        if key not in others:
            yield _kept(name, shown.kind, "", shown.serializers.values(), known)
        elif key not in own:
            yield StateRestore(name, shown.kind, _ONLY_THERE, AS_IS, (), "")
        else:
            findings = [*_of_operator(own[key], others[key], known)]
            reasons = tuple(map(str, findings))
            yield StateRestore(name, shown.kind, None, worst(findings), reasons, "")


def _of_operator(old: OperatorState, new: OperatorState, known: Classes) -> Iterator[Finding]:
    """Yield a Finding for each difference that is minded. Flink: DefaultOperatorStateBackend."""
    if old.kind != new.kind:
        yield Finding(INCOMPATIBLE, "", f"the mode {old.kind} is {new.kind}")
        return
    for role in sorted(old.serializers.keys() & new.serializers.keys()):
        pair = old.serializers[role], new.serializers[role]
        yield from resolve(*pair, known, _ROLES.get(role, role))
