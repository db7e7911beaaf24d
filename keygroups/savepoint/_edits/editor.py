"""The verbs of an edit of one operator: each checks its arguments at once and adds its steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from keygroups._checks import (
    LONG_MAX,
    LONG_MIN,
    check_callable,
    check_class,
    check_int,
    check_str,
    iterate,
    show,
)
from keygroups._serializers.base import Serializer
from keygroups._serializers.collections import is_in_order
from keygroups._serializers.data_output import utf
from keygroups._serializers.jvm.kryo import check_kryo_version
from keygroups._serializers.scalars import VOID_NAMESPACE
from keygroups.errors import (
    InvalidValueError,
    UnsupportedKeyTypeError,
)
from keygroups.hashing import finalise
from keygroups.savepoint._edits.converted_values import (
    Conversion,
    ValueFunction,
    converted_state,
)
from keygroups.savepoint._edits.edit_task import StatePlan
from keygroups.savepoint._edits.keyed_state import EditedKeyedState
from keygroups.savepoint._edits.merged_header import MergedHeader, merged_header, refused
from keygroups.savepoint._edits.operator_state_verbs import OperatorStateEditor
from keygroups.savepoint._edits.steps import (
    BY_COLUMNS,
    AnyStep,
    BatchFunction,
    DeleteKeys,
    EntryMapping,
    KeyFunction,
    KeyMapping,
    MapBatches,
    MapFunction,
    SetTtl,
    key_changer,
)
from keygroups.savepoint._edits.timer_steps import TimerFunction, TimerMapping
from keygroups.savepoint._edits.traces import KeptOperator, UnsearchedPlace, key_traces
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import OperatorMetadata
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._state.header import StateDescriptor, stored_serializer, write_state
from keygroups.savepoint._state.key_hashes import has_hash, key_hasher
from keygroups.savepoint._state.keys import sought_key
from keygroups.savepoint._state.stored_values import check_time
from keygroups.savepoint._state.writing.new_states import (
    NewState,
    check_state_name,
    operator_key_to_write,
)
from keygroups.types import KeyType

_CONTENTS, _MERGING = "window-contents", "merging-window-set"  # Flink: WindowOperator
_TIMERS = "PRIORITY_QUEUE"  # the kind of their states


class _State:
    """A state as the verbs so far leave it; `data` is its part of the header.

    `number` is its place in the old header, and so its order in the new one.
    """

    def __init__(self, number: int, descriptor: StateDescriptor, data: bytes) -> None:
        self.number = number
        self.old_name = descriptor.name
        self.descriptor = descriptor
        self.data = data
        self.steps: list[tuple[StateDescriptor, AnyStep]] = []


class OperatorEditor(OperatorStateEditor):
    """Edits the state of one operator; `SavepointEditor.operator` makes it.

    Its verbs are checked when they are called, and done, in that order, when the savepoint is
    written: each sees what those before it leave.

    >>> from tempfile import mkdtemp
    >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
    >>> from keygroups.types import LONG, STRING
    >>> folder = mkdtemp()
    >>> with SavepointWriter(folder + "/old") as writer:
    ...     counts = [ValueStateDescriptor("cnt", LONG)]
    ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
    ...     for user in sorted(["ann", "bob", "cid"], key=by_user.key_group):
    ...         by_user.write("cnt", user, len(user))
    >>> editor = SavepointWriter.from_existing_savepoint(folder + "/old", folder + "/new")
    >>> with editor as writer:
    ...     operator = writer.operator("by-user")
    ...     operator.rename_state("cnt", "count")
    ...     operator.delete_keys(["bob", "dan"])
    ...     operator.map_entries("count", lambda entry: entry.value + 1)
    >>> by_user = read_savepoint(folder + "/new").operator("by-user")
    >>> sorted((entry.state, entry.key, entry.value) for entry in by_user.entries())
    [('count', 'ann', 4), ('count', 'cid', 4)]
    >>> (edited,) = editor.report().operators
    >>> edited.deleted_keys.without_entries
    ('dan',)
    """

    def __init__(self, operator: Operator) -> None:
        super().__init__(operator)
        self._key_bytes = b""
        self._states: dict[str, _State] | None = None  # new name to state; None before the read
        self._old_names: tuple[str, ...] = ()
        self._removed: list[StateDescriptor] = []
        self._keys_to_delete: dict[bytes, Any] = {}  # bytes to key, as DeleteKeys.add returns them
        self._deleted_from: Serializer | None = None  # serializer of `_keys_to_delete`
        # The step that the next delete_keys extends; None once map_keys, map_entries or
        # map_timers may have made keys that its step, which runs before them, never sees.
        self._deletion: DeleteKeys | None = None
        self._is_changed = self._is_anew = False

    def __repr__(self) -> str:
        return f"<OperatorEditor of {self._operator!r}>"

    def as_pyflink(
        self, key_type: KeyType | Serializer, states: Iterable[NewState]
    ) -> OperatorEditor:
        """Take the keys, the names and the types that the operator's PyFlink job has.

        The arguments and what is raised are those of `Operator.as_pyflink`; all verbs for keyed
        state then take and give values as the job has them. It comes before these. Raises
        InvalidValueError where one was called. Returns the editor itself.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, PYFLINK
        >>> folder, states = mkdtemp(), [ValueStateDescriptor("count", LONG)]
        >>> with SavepointWriter(folder + "/old") as writer:
        ...     by_user = writer.add_operator("by-user", PYFLINK(LONG), states, 128, 3, sort=True)
        ...     for user in range(3):
        ...         by_user.write("count", user, 5)
        >>> editor = SavepointWriter.from_existing_savepoint(folder + "/old", folder + "/new")
        >>> with editor as writer:
        ...     operator = writer.operator("by-user").as_pyflink(LONG, states)
        ...     operator.delete_keys([0])
        ...     operator.map_entries("count", lambda entry: entry.value + entry.key)
        >>> by_user = read_savepoint(folder + "/new").operator("by-user").as_pyflink(LONG, states)
        >>> sorted((entry.key, entry.value) for entry in by_user.entries())
        [(1, 6), (2, 7)]
        """
        self._check_open()
        if self._states is not None:
            raise InvalidValueError(
                f"as_pyflink must come before other verbs of {self._operator.label}"
            )
        self._operator = self._operator.as_pyflink(key_type, states)
        return self

    @property
    def is_changed(self) -> bool:
        """Whether the keyed state has to be written anew."""
        return self._is_changed

    @property
    def states(self) -> tuple[StateDescriptor, ...]:
        """The keyed states as the verbs so far leave them, timers among them."""
        return tuple(state.descriptor for state in self._in_order())

    def remove_state(self, name: str) -> None:
        """Remove a state, or timers, with all entries.

        The states of windows and their timers go together, which is checked at the end. Raises
        InvalidValueError for a state that is not there, InvalidTypeError; SavepointError where
        the keyed state cannot be written anew.
        """
        state = self._state(name)
        self._removed.append(state.descriptor)
        del self._read()[state.descriptor.name]
        self._is_changed = True

    def rename_state(self, name: str, new_name: str) -> None:
        """Give a state another name, by which the job's descriptor then finds it.

        Raises InvalidValueError for a state that is not there, for timers and windows, which Flink
        finds by the names they have, and for a name that is taken or that Flink keeps for itself;
        InvalidTypeError; SavepointError as `remove_state`.
        """
        state = self._state(name)
        old = state.descriptor
        new_name = check_state_name(new_name)
        if old.kind == _TIMERS or old.name in (_CONTENTS, _MERGING):
            raise InvalidValueError(
                f"state {old.name!r} must keep its name, by which Flink's own operator finds it"
            )
        states = self._read()
        if new_name in states:
            raise InvalidValueError(f"new_name must be of no other state, got {show(new_name)}")
        size = int.from_bytes(state.data[:2], "big")
        state.descriptor = replace(old, name=new_name)
        stored_name = utf("name of a state", state.descriptor.stored_name)
        state.data = stored_name + state.data[2 + size :]
        states[new_name] = states.pop(old.name)
        self._is_changed = True

    def set_ttl(
        self,
        name: str,
        has_ttl: bool = True,
        last_access: int | None = None,
        *,
        allow_any_last_access: bool = False,
    ) -> None:
        """Give the values of a state a time to live, take it away, or set their last access anew.

        With `has_ttl` each value, element of a LIST or value in a MAP is then last used at
        `last_access`, epoch milliseconds, whether it had a time or not; without it, last_access
        is None and what was there is dropped. `allow_any_last_access` is that of
        `SavepointWriter.add_operator`.

        Raises InvalidValueError for a state that is not there, for timers, for the set of merging
        windows, for a state without a time to live that is to lose it, and for such a last access;
        UnsupportedKeyTypeError where only the job's classes read or write the state;
        InvalidTypeError; SavepointError as `remove_state`.
        """
        state = self._with_values(name)
        old = state.descriptor
        allow = check_class("allow_any_last_access", allow_any_last_access, bool, "a bool")
        if check_class("has_ttl", has_ttl, bool, "a bool"):
            last_access = check_int("last_access", last_access, LONG_MIN, LONG_MAX)
            if not allow:
                check_time(last_access)
        elif last_access is not None:
            raise InvalidValueError(
                f"last_access must be None without has_ttl, got {show(last_access)}"
            )
        elif not old.has_ttl:
            raise InvalidValueError(f"state {old.name!r} has no time to live that could go")
        new = replace(old, has_ttl=has_ttl)
        if old.kind == "LIST" and stored_serializer(old).read is None:
            raise UnsupportedKeyTypeError(
                f"state {old.name!r} must be of what can be read here, to find its elements, got "
                f"{old}"
            )
        if has_ttl != old.has_ttl:
            try:
                state.data = write_state(new)
            except UnsupportedKeyTypeError as error:
                raise UnsupportedKeyTypeError(f"state {old.name!r}: {error}") from None
        self._add(state, SetTtl(last_access))
        state.descriptor = new

    def convert_state(
        self, name: str, to: NewState | Operator, value: ValueFunction | None = None
    ) -> None:
        """Write the values of a state by another serializer, that of the job as it is now.

        `to` is a descriptor of the state, as `SavepointWriter.add_operator` takes them, or the
        operator of a savepoint of the new job, such as one of a test run, whose state of this name
        gives the serializer's snapshot as Flink wrote it: a POJO of another package takes one.
        `value` takes a value, an element of a LIST, a value in a MAP or an accumulator, and
        returns what it becomes; without it they are written as they are, such as ints as longs. A
        null stays one. Names, keys, user keys, windows and times of last access stay. On Spark
        the function is pickled.

        Raises InvalidValueError for a state that is not there, for timers, for the set of merging
        windows, and where name, kind, time to live, keys, namespaces, user keys or Kryo of `to`
        are others, which Flink would not restore as the job's; UnsupportedKeyTypeError where only
        the job's classes read or write the values; InvalidTypeError; SavepointError as
        `remove_state`. When it is written: what the function raises, InvalidTypeError or
        InvalidValueError for what it returns and is no value of `to`, and UnsupportedKeyTypeError
        for a value that only the job's classes read, such as a subclass of a POJO.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import INT, LONG, STRING
        >>> folder = mkdtemp()
        >>> with SavepointWriter(folder + "/old") as writer:
        ...     counts = [ValueStateDescriptor("count", INT)]
        ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
        ...     by_user.write("count", "ann", 5)
        >>> editor = SavepointWriter.from_existing_savepoint(folder + "/old", folder + "/new")
        >>> with editor as writer:
        ...     writer.operator("by-user").convert_state(
        ...         "count", ValueStateDescriptor("count", LONG), lambda count: count * 1000
        ...     )
        >>> by_user = read_savepoint(folder + "/new").operator("by-user")
        >>> print(*by_user.states, by_user.get("ann", "count"))
        count: VALUE <STRING, LONG> 5000
        """
        state = self._with_values(name)
        if value is not None:
            check_callable("value", value)
        new, data = converted_state(state.descriptor, to, self._operator._context.kryo_version)
        self._add(state, partial(Conversion, new, value))
        state.descriptor, state.data = new, data

    def delete_keys(self, keys: Iterable[Any]) -> None:
        """Delete all that the keyed state of the operator has of some keys.

        That are the entries of all states, timers and windows. `keys` are of the operator's key
        type, as `StateEntry` has them: of a class that only the job reads the bytes that Flink
        wrote. Keys that only the job writes, such as a POJO with a collection in it, are compared
        as they are read, in all key groups; `key_bytes` of an entry says which bytes one has. A
        key that has no entry is no error; the report says which.

        Raises InvalidTypeError or InvalidValueError for what is no such key, InvalidValueError
        where keys were deleted before `map_keys` has given them another type,
        UnsupportedKeyTypeError for keys with a map or a set in them; SavepointError as
        `remove_state`.
        """
        states = self._read()
        serializer = self._key_serializer()
        if not is_in_order(serializer):
            raise UnsupportedKeyTypeError(
                f"keys of {serializer} cannot be deleted: the bytes of a map or a set are in an "
                "order that only Java has"
            )
        encoded = [
            (*self._encoded_key(serializer, key), key) for key in iterate("keys", "keys", keys)
        ]
        if not encoded:
            raise InvalidValueError("keys must be at least one, got none")
        if self._deleted_from not in (None, serializer):
            raise InvalidValueError(
                f"keys of {self._deleted_from} are deleted before they become {serializer}: none "
                "can be deleted after that too"
            )
        if self._deletion is None:
            self._deletion = DeleteKeys({})
            for state in states.values():
                self._add(state, self._deletion)
        for key_group, data, key in encoded:
            token = self._deletion.add(key_group, data)
            self._keys_to_delete.setdefault(token, key)
        self._deleted_from = serializer

    def map_entries(
        self, name: str, function: MapFunction, *, allow_any_last_access: bool = False
    ) -> None:
        """Call a function with each entry of a state, and write what it returns.

        `function` takes a StateEntry and returns a new value for it; DELETE; or entries, which are
        a StateEntry, a list of them or an iterator: `entry._replace(...)` with another value,
        user key, key or last access; those of windows keep their key and namespace, as their
        timers do. A value that is returned has the last access that was there.
        What is equal to what was there is kept as it is. No two entries may have one key in the
        end. On Spark the function is pickled. `allow_any_last_access` is that of
        `SavepointWriter.add_operator`, for times that were not there.

        A value that only the job's classes read is bytes. One that they alone write may be
        deleted, or stay as it is.

        Raises InvalidValueError for a state that is not there, for timers, which `map_timers`
        takes, and for the set of merging windows; InvalidTypeError; SavepointError as
        `remove_state`. When it is written: what the function raises, and InvalidTypeError or
        InvalidValueError for what it returns, as `OperatorWriter.write` raises them,
        UnsupportedKeyTypeError for another value that only the job's classes write.
        """
        state = self._with_values(name)
        check_callable("function", function)
        allow = check_class("allow_any_last_access", allow_any_last_access, bool, "a bool")
        self._add(state, partial(EntryMapping, function, allow))
        self._deletion = None

    def map_batches(
        self, name: str, function: BatchFunction, *, allow_any_last_access: bool = False
    ) -> None:
        """Call a function with batches of the entries of a state, and write what it returns.

        `function` takes a `pyarrow.RecordBatch` of some 16,384 entries or 4 MiB: the columns of
        `Operator.to_arrow`, and before them `row`, their numbers in the batch. It returns a table
        of Arrow, pandas or Polars with the column `row` and those of `value` and `last_access`
        that change, as `OperatorWriter.write_table` takes them. Entries whose row it leaves out
        are deleted; keys, user keys and namespaces stay, and so do the bytes of values if it
        does not return that column. Returned ones are written anew: a value that Java wrote in
        other bytes than these counts as changed. The times that elements of a LIST have are in
        its values. On Spark the function is pickled. `allow_any_last_access` is that of
        `SavepointWriter.add_operator`, for times that were not in the batch.

        No `map_entries`, `map_keys` or `convert_state` of the same state goes with it.

        Raises InvalidValueError for a state that is not there, for timers, for the set of merging
        windows, and for a state with one of those verbs; InvalidTypeError; ModuleNotFoundError
        without the extra `arrays`; SavepointError as `remove_state`. When it is written: what the
        function raises, InvalidTypeError for a table or a column of another type,
        InvalidValueError for other columns, for rows that are not of the batch or come twice, and
        for a value as `OperatorWriter.write` raises it, UnsupportedKeyTypeError for values that
        only the job's classes write.

        >>> from tempfile import mkdtemp
        >>> import pyarrow as pa
        >>> import pyarrow.compute as pc
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder = mkdtemp()
        >>> with SavepointWriter(folder + "/old") as writer:
        ...     counts = [ValueStateDescriptor("count", LONG)]
        ...     by_user = writer.add_operator("by-user", STRING, counts, 128, 3, sort=True)
        ...     for user, count in (("ann", 5), ("bob", 0), ("cid", 7)):
        ...         by_user.write("count", user, count)
        >>> def grown(batch):
        ...     batch = batch.filter(pc.greater(batch["value"], 0))
        ...     return pa.table({"row": batch["row"], "value": pc.add(batch["value"], 1)})
        >>> editor = SavepointWriter.from_existing_savepoint(folder + "/old", folder + "/new")
        >>> with editor as writer:
        ...     writer.operator("by-user").map_batches("count", grown)
        >>> by_user = read_savepoint(folder + "/new").operator("by-user")
        >>> sorted((entry.key, entry.value) for entry in by_user.entries())
        [('ann', 6), ('cid', 8)]
        """
        state = self._with_values(name)
        check_callable("function", function)
        allow = check_class("allow_any_last_access", allow_any_last_access, bool, "a bool")
        from keygroups.savepoint._edits.batch_mapping import check_columns

        check_columns(state.descriptor)
        self._add(state, MapBatches(function, allow))

    def map_timers(self, name: str, function: TimerFunction) -> None:
        """Call a function with each timer of a state of timers, and write what it returns.

        `function` takes a StateEntry, with the key, the namespace and the timestamp of a timer,
        and returns a new timestamp for it, epoch milliseconds; DELETE; or timers, which are a
        StateEntry, a list of them or an iterator: `entry._replace(...)` with another timestamp or,
        of timers without windows, another key. No two timers may be one in the end. A window
        whose timers are deleted never fires. On Spark the function is pickled.

        Raises InvalidValueError for a state that is not there, or has no timers; InvalidTypeError;
        SavepointError as `remove_state`. When it is written: what the function raises, and
        InvalidTypeError or InvalidValueError for what it returns and is no timer,
        UnsupportedKeyTypeError for another key that only the job writes.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import DELETE, SavepointWriter, TimerServiceDescriptor
        >>> from keygroups.savepoint import read_savepoint
        >>> from keygroups.types import STRING
        >>> folder = mkdtemp()
        >>> timers = "_timer_state/event_user-timers"
        >>> with SavepointWriter(folder + "/old") as writer:
        ...     states = [TimerServiceDescriptor()]
        ...     by_user = writer.add_operator("by-user", STRING, states, 128, 3, sort=True)
        ...     for user, time in (("ann", 5), ("ann", 6_000), ("bob", 7_000)):
        ...         by_user.write_timer(user, time)
        >>> editor = SavepointWriter.from_existing_savepoint(folder + "/old", folder + "/new")
        >>> with editor as writer:
        ...     writer.operator("by-user").map_timers(
        ...         timers, lambda timer: DELETE if timer.timestamp < 99 else timer.timestamp + 1
        ...     )
        >>> by_user = read_savepoint(folder + "/new").operator("by-user")
        >>> sorted((timer.key, timer.timestamp) for timer in by_user.entries([timers]))
        [('ann', 6001), ('bob', 7001)]
        """
        state = self._state(name)
        check_callable("function", function)
        if state.descriptor.kind != _TIMERS:
            raise InvalidValueError(
                f"state must be one of timers, got {show(state.descriptor.name)}, which "
                "map_entries takes"
            )
        self._add(state, partial(TimerMapping, function))
        self._deletion = None

    def map_keys(
        self, function: KeyFunction, key_type: KeyType | Serializer | None = None
    ) -> None:
        """Give the keys of the operator others, in all states, timers and windows.

        `function` takes a key and returns the one that it becomes, or DELETE for one that is to
        go with all that is of it. It is called several times for a key, and must return the same
        each time. With `key_type`, a key type or a Serializer that has one, these are of that
        type, which is then the operator's; the job has to have it too. Values, user keys,
        namespaces and timestamps stay as they are. On Spark the function is pickled.

        Two keys may become one if none of their entries then are one: a VALUE or a LIST that both
        have is an error, as is a user key in a MAP or a timer that both have.

        Raises UnsupportedKeyTypeError for keys that only the job reads, or that nobody can write
        here, and for a namespace that only the job reads if its length is needed;
        InvalidTypeError; InvalidValueError for keys of another Kryo than that of the savepoint;
        SavepointError as `remove_state`. When it is written: what the function raises,
        InvalidTypeError or InvalidValueError for what it returns and is no key, and
        InvalidValueError for two keys that become one.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder = mkdtemp()
        >>> with SavepointWriter(folder + "/old") as writer:
        ...     counts = [ValueStateDescriptor("count", LONG)]
        ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
        ...     by_user.write("count", "user-17", 5)
        >>> editor = SavepointWriter.from_existing_savepoint(folder + "/old", folder + "/new")
        >>> with editor as writer:
        ...     writer.operator("by-user").map_keys(lambda key: int(key[5:]), LONG)
        >>> by_user = read_savepoint(folder + "/new").operator("by-user")
        >>> [(entry.key, entry.value) for entry in by_user.entries()]
        [(17, 5)]
        """
        old = self._key_serializer()
        check_callable("function", function)
        new = old if key_type is None else operator_key_to_write(key_type)
        check_kryo_version("key_type", new, self._operator._context.kryo_version)
        is_known = new.key_type is not None and new.write is not None
        if not (is_known or new == old) or not is_in_order(new):
            raise UnsupportedKeyTypeError(
                f"keys cannot become others of {new}: only the job can write them"
            )
        states = self._read().values()
        changed = []
        for state in states:
            try:
                changed.append(_with_key(state, new))
            except UnsupportedKeyTypeError as error:
                raise UnsupportedKeyTypeError(
                    f"keys in state {state.descriptor.name!r} cannot be mapped: {error}"
                ) from None
        step = partial(KeyMapping, function, new)
        for state in states:
            _check_together(state, step)
        if any(state.descriptor.key_serializer != new for state in states):
            self._key_bytes = new.snapshot_bytes()
        for state, (descriptor, data) in zip(states, changed):
            self._add(state, step)
            state.descriptor, state.data = descriptor, data
        self._deletion = None

    def traces(self, others: Iterable[Operator]) -> tuple[UnsearchedPlace, ...] | None:
        """Return the places that may still hold deleted keys, None if no keys are deleted.

        `others` are the other operators of the savepoint. Raises InvalidTypeError for others.
        """
        checked = [
            check_class("others", other, Operator, "operators of a savepoint")
            for other in iterate("others", "operators", others)
        ]
        return self._unsearched(map(OperatorEditor, checked))

    def _unsearched(self, others: Iterable[OperatorEditor]) -> tuple[UnsearchedPlace, ...] | None:
        """Return the places that nobody searched, beside what the other operators delete."""
        if self._deleted_from is None:
            return None
        operators = [
            KeptOperator(
                kept._operator,
                partial(getattr, kept if kept.is_changed else kept._operator, "states"),
                self._is_searched_by(kept),
            )
            for kept in (self, *others)
        ]
        return tuple(key_traces(self._deleted_from, operators))

    def _is_searched_by(self, kept: OperatorEditor) -> bool:
        """Tell whether an editor deletes these keys, and makes none of them anew after that."""
        return (
            kept._deletion is not None
            and kept._deleted_from == self._deleted_from
            and kept._deletion.tokens >= self._keys_to_delete.keys()
        )

    def edited_keyed_state(self, folder: OutputFolder, new: OperatorMetadata) -> EditedKeyedState:
        """Return the EditedKeyedState, after all checks that need no entries.

        `folder` is that of the new savepoint, `new` the operator's metadata there. Raises
        InvalidValueError for windows without their timers and timers without their windows,
        InvalidTypeError, and SavepointError as `remove_state`.
        """
        check_class("folder", folder, OutputFolder, "the folder of a new savepoint")
        check_class("new", new, OperatorMetadata, "the metadata of an operator")
        states = self._in_order()
        self._check_windows()
        header = MergedHeader(
            tuple(state.descriptor for state in states),
            self._key_bytes,
            tuple(state.data for state in states),
        )
        plans = {
            state.old_name: StatePlan(number, tuple(state.steps))
            for number, state in enumerate(states)
        }
        new_names: dict[str, str | None] = dict.fromkeys(self._old_names)
        for state in states:
            new_names[state.old_name] = state.descriptor.name
        return EditedKeyedState(
            folder,
            self._operator,
            new,
            header,
            plans,
            new_names,
            self._keys_to_delete,
            self._is_anew,
        )

    def _check_moves(self, max_parallelism: int) -> None:
        """Check that every entry can move to its key group under another max parallelism.

        Raises SavepointError where the hash of the keys is not known and the new max parallelism
        does not divide the old one.
        """
        old = self._operator.max_parallelism
        states = [*self._read().values()]
        key = states[0].descriptor.key_serializer if states else None
        if key is not None and not has_hash(key) and old % max_parallelism:
            raise refused(
                self._operator,
                f"has keys of {key}, whose hash is not known here, so that the new max "
                f"parallelism must be a divisor of {old}, got {max_parallelism}",
            )

    def _read(self) -> dict[str, _State]:
        self._check_open()
        if self._states is None:
            operator = self._operator
            if not operator.tasks():
                raise InvalidValueError(f"operator {operator.label} has no keyed state to edit")
            header = merged_header(operator)
            self._key_bytes = header.key_bytes
            self._states = {
                state.name: _State(number, state, data)
                for number, (state, data) in enumerate(zip(header.states, header.state_bytes))
            }
            self._old_names = tuple(self._states)
        return self._states

    def _in_order(self) -> list[_State]:
        return sorted(self._read().values(), key=lambda state: state.number)

    def _state(self, name: str) -> _State:
        states = self._read()
        state = states.get(check_str("state", name))
        if state is None:
            raise InvalidValueError(
                f"state must be of {self._operator.label}, which has "
                f"{', '.join(states) or 'none'}, got {show(name)}"
            )
        return state

    def _with_values(self, name: str) -> _State:
        """Return a state whose values the job sets; refuse others."""
        state = self._state(name)
        descriptor = state.descriptor
        if descriptor.value_serializer is None or descriptor.name == _MERGING:
            raise InvalidValueError(
                f"state must be one whose values the job sets, got {show(descriptor.name)}, which "
                "Flink's own operator keeps"
            )
        return state

    def _add(self, state: _State, step: AnyStep) -> None:
        _check_together(state, step)
        state.steps.append((state.descriptor, step))
        self._is_changed = True

    def _encoded_key(self, serializer: Serializer, key: Any) -> tuple[int | None, bytes | str]:
        """Return the key group of a key, None without a known hash, and its `sought_key`."""
        key_group = None
        hasher = key_hasher(serializer)
        if hasher is not None:
            key_group = finalise(hasher(key)) % self._operator.max_parallelism
        return key_group, sought_key(serializer, key)

    def _key_serializer(self) -> Serializer:
        """Return the serializer of keys, which all states share; refuse an operator without."""
        states = [*self._read().values()]
        if not states:
            raise InvalidValueError(f"operator {self._operator.label} has no state left")
        return states[0].descriptor.key_serializer

    def _check_windows(self) -> None:
        """Refuse windows without their timers, and timers without their windows."""
        remaining = _Remaining(state.descriptor for state in self._read().values())
        for state in self._removed:
            for other, why in remaining.torn(state):
                raise InvalidValueError(
                    f"states {state.name!r} and {other!r} of {self._operator.label} must go "
                    f"together: {why}"
                )


def _check_together(state: _State, step: AnyStep) -> None:
    """Refuse a function of batches and one of entries for one state."""
    steps = [*(each for _, each in state.steps), step]
    has_batches = any(isinstance(each, MapBatches) for each in steps)
    if has_batches and not all(isinstance(each, BY_COLUMNS) for each in steps):
        raise InvalidValueError(
            f"state {state.descriptor.name!r} must not have map_batches together with "
            "map_entries, map_keys or convert_state, which take single entries"
        )


def _with_key(state: _State, new_key: Serializer) -> tuple[StateDescriptor, bytes]:
    """Return the descriptor of a state with keys of another type, and its part of the header.

    Raises UnsupportedKeyTypeError where entries cannot get such keys, or only Flink can write the
    header.
    """
    old = state.descriptor
    if old.key_serializer.read is None:
        raise UnsupportedKeyTypeError(f"only the job can read keys of {old.key_serializer}")
    key_changer(old, new_key)
    if old.key_serializer == new_key:
        return old, state.data
    new = replace(old, key_serializer=new_key)
    return new, write_state(new) if old.kind == _TIMERS else state.data


class _Remaining:
    """The states that remain: by namespace the name of one state of values and one of timers."""

    def __init__(self, states: Iterable[StateDescriptor]) -> None:
        self._names: set[str] = set()
        self._values: dict[Serializer, str] = {}
        self._timers: dict[Serializer, str] = {}
        for state in states:
            self._names.add(state.name)
            names = self._timers if state.kind == _TIMERS else self._values
            names.setdefault(state.namespace_serializer, state.name)

    def torn(self, removed: StateDescriptor) -> Iterator[tuple[str, str]]:
        """Yield the name of each state that must not stay without a removed one, and why.

        Windows need their timers and timers their windows; merging windows are in two states.
        """
        namespace = removed.namespace_serializer
        timers, value = self._timers.get(namespace), self._values.get(namespace)
        for name, other in ((_CONTENTS, _MERGING), (_MERGING, _CONTENTS)):
            if removed.name == name and other in self._names:
                yield other, "each window is in both"
        if removed.kind != _TIMERS:
            if timers is not None and (value is None or removed.name == _CONTENTS):
                yield timers, "the timers would fire on nothing"
        elif namespace != VOID_NAMESPACE:
            if value is not None:
                yield value, "a window without its timers never fires, and is never cleaned up"
            if timers is not None:
                yield timers, "each window may have its timers in either"
