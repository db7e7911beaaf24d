"""The states of an operator that is to be written, as a job's own descriptors name them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from keygroups._checks import check_class, check_str, iterate, show
from keygroups._serializers.base import Serializer, check_writable
from keygroups._serializers.collections import is_in_order
from keygroups._serializers.compounds import PyFlinkSerializer
from keygroups._serializers.data_output import utf
from keygroups._serializers.pyflink import python_serializer, thread_serializer
from keygroups._serializers.scalars import VOID_NAMESPACE
from keygroups._serializers.streaming import TtlSerializer, unwrapped
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint._pyflink.python_keys import written_key
from keygroups.savepoint._state.header import (
    StateDescriptor,
    write_keyed_header,
    write_state,
)
from keygroups.state_keys import serializer_of
from keygroups.types import PYFLINK, KeyType

MOST_STATES = 32767
PROCESSING_TIME, EVENT_TIME = TIME_DOMAINS = ("PROCESSING_TIME", "EVENT_TIME")
"""As Flink's TimeDomain has them, in the order in which it makes their states."""
USER_TIMERS = "user-timers"  # the timer service of a KeyedProcessFunction

TIMER_STATES = "_timer_state/"  # start of the names of Flink's own states of timers
KINDS_IN_THREAD = {"LIST": "LIST", "MAP": "MAP"}
"""The kinds of PyFlink's thread mode, in which all others are a VALUE."""

_DEFAULT = "default"  # the column family that every RocksDB has, and no state of Flink


class NewState(ABC):
    """A state, or the timers, of an operator that is new: one of the classes below."""

    name: str

    @abstractmethod
    def described(self, key: Serializer) -> list[StateDescriptor]:
        """Return the states as the reader finds them, one or several; `key` is the operator's."""


class StateOfValues(NewState):
    """A state as a job's own descriptor names it."""

    kind: ClassVar[str]  # the `kind` of its StateDescriptor
    value_name: ClassVar[str] = "value_type"  # the argument that is the type of a value
    has_ttl: bool

    def __post_init__(self) -> None:
        # A plain str, of whatever class it was.
        object.__setattr__(self, "name", check_state_name(self.name))
        check_class("has_ttl", self.has_ttl, bool, "a bool")
        self.value_serializer()

    def value_serializer(self) -> Serializer:
        """Return the serializer of a value, or raise where none can be written."""
        return serializer_to_write(self.value_name, getattr(self, self.value_name))

    def user_key_serializer(self) -> Serializer | None:
        """Return the serializer of the keys in a MAP, None in other states."""
        return None

    def _type_names(self) -> list[str]:
        """Return the names of the arguments that are types: of a MAP's keys, and of a value."""
        return [self.value_name]

    def python_types(self) -> list[Serializer]:
        """Return the serializers of PyFlink's process mode: of a MAP's keys, and of a value."""
        return [python_serializer(name, getattr(self, name)) for name in self._type_names()]

    def as_pyflink(self, key: PyFlinkSerializer, namespace: Serializer) -> StateDescriptor:
        """Return the state as the mode of PyFlink has it of which the keys are."""
        if not key.in_thread:
            return self.as_python(key, namespace)
        types = [thread_serializer(name, getattr(self, name)) for name in self._type_names()]
        user_key, value = [None, *types][-2:]
        kind = KINDS_IN_THREAD.get(self.kind, "VALUE")
        return StateDescriptor(self.name, kind, key, namespace, value, user_key, self.has_ttl)

    def as_python(self, key: Serializer, namespace: Serializer) -> StateDescriptor:
        """Return the state as PyFlink's process mode has it."""
        user_key, value = [None, *self.python_types()][-2:]
        return StateDescriptor(
            self.name, self.kind, key, namespace, value, user_key, self.has_ttl, is_python=True
        )

    def described(self, key: Serializer) -> list[StateDescriptor]:
        """Return the state as the reader finds it."""
        if isinstance(key, PyFlinkSerializer):
            return [self.as_pyflink(key, VOID_NAMESPACE)]
        value, user_key = self.value_serializer(), self.user_key_serializer()
        return [
            StateDescriptor(
                self.name, self.kind, key, VOID_NAMESPACE, value, user_key, self.has_ttl
            )
        ]


@dataclass(frozen=True)
class _OfOneType(StateOfValues):
    name: str
    value_type: KeyType | Serializer
    has_ttl: bool = field(default=False, kw_only=True)


class ValueStateDescriptor(_OfOneType):
    """A ValueState: its name, the type of its value, whether it has a time to live.

    `value_type` is a key type as in `keygroups.types`, or the Serializer of any other type, such
    as that of a state of another savepoint. `has_ttl` says that the job's state has a time to
    live, whatever it is: then each value is written with the time of its last access. Raises
    InvalidTypeError, InvalidValueError for a name that Flink does not take and for the Serializer
    of a TtlValue, UnsupportedKeyTypeError for a type that only the job's own classes write.

    >>> from keygroups.types import LONG
    >>> ValueStateDescriptor("count", LONG)
    ValueStateDescriptor(name='count', value_type=LONG, has_ttl=False)
    >>> from keygroups.state_keys import BYTES
    >>> ValueStateDescriptor("image", BYTES)
    ValueStateDescriptor(name='image', value_type=BYTES, has_ttl=False)
    """

    kind = "VALUE"


class ReducingStateDescriptor(_OfOneType):
    """A ReducingState: like a ValueState, of what was reduced so far.

    >>> from keygroups.types import DOUBLE
    >>> ReducingStateDescriptor("sum", DOUBLE)
    ReducingStateDescriptor(name='sum', value_type=DOUBLE, has_ttl=False)
    """

    kind = "REDUCING"


@dataclass(frozen=True)
class AggregatingStateDescriptor(StateOfValues):
    """An AggregatingState: the type of its accumulator, which is what Flink keeps of it.

    Of Java's AggregateFunction<IN, ACC, OUT> that is ACC; else like a ValueState.

    >>> from keygroups.types import INT, LONG, TUPLE
    >>> AggregatingStateDescriptor("average", TUPLE(LONG, INT))
    AggregatingStateDescriptor(name='average', accumulator_type=TUPLE(LONG, INT), has_ttl=False)
    """

    kind, value_name = "AGGREGATING", "accumulator_type"
    name: str
    accumulator_type: KeyType | Serializer
    has_ttl: bool = field(default=False, kw_only=True)


class ListStateDescriptor(_OfOneType):
    """A ListState: `value_type` is that of an element; else like a ValueState.

    >>> from keygroups.types import STRING
    >>> ListStateDescriptor("tags", STRING, has_ttl=True)
    ListStateDescriptor(name='tags', value_type=STRING, has_ttl=True)
    """

    kind = "LIST"


@dataclass(frozen=True)
class MapStateDescriptor(StateOfValues):
    """A MapState: the types of the keys in a map and of their values; else like a ValueState.

    Maps and sets are no user keys, nor in them: RocksDB finds a user key by its bytes, which are
    in the order that Java has a map in. An entry whose user key is None is refused when it is
    written; Flink keeps no null there.

    >>> from keygroups.types import LONG, STRING
    >>> MapStateDescriptor("cities", STRING, LONG)
    MapStateDescriptor(name='cities', user_key_type=STRING, value_type=LONG, has_ttl=False)
    """

    kind = "MAP"
    name: str
    user_key_type: KeyType | Serializer
    value_type: KeyType | Serializer
    has_ttl: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.user_key_serializer()

    def user_key_serializer(self) -> Serializer:
        """Return the serializer of the keys in a map, or raise where none can be written."""
        return key_to_write("user_key_type", self.user_key_type)

    def _type_names(self) -> list[str]:
        return ["user_key_type", *super()._type_names()]


def check_state_name(name: object) -> str:
    """Return a name that a state may have, or raise InvalidTypeError or InvalidValueError."""
    text = check_str("name of a state", name)
    utf("name of a state", text)
    if text in ("", _DEFAULT) or text.startswith(TIMER_STATES):
        raise InvalidValueError(
            f"name of a state must not be empty, nor be {_DEFAULT!r} or start with "
            f"{TIMER_STATES!r}, which Flink keeps for itself, got {show(text)}"
        )
    return text


@dataclass(frozen=True)
class TimerServiceDescriptor(NewState):
    """The timers of an operator, of event time and of processing time.

    `name` is that of its timer service, which for a KeyedProcessFunction is "user-timers".
    `namespace_type` is a key type or a Serializer, VOID_NAMESPACE for timers without one, as
    those are. Raises InvalidTypeError, InvalidValueError for a name that is empty or too long,
    UnsupportedKeyTypeError for a type that only the job's own classes write.

    Flink: InternalTimeServiceManager.getInternalTimerService.

    >>> TimerServiceDescriptor()
    TimerServiceDescriptor(name='user-timers', namespace_type=VOID_NAMESPACE)
    """

    name: str = USER_TIMERS
    namespace_type: KeyType | Serializer = VOID_NAMESPACE

    def __post_init__(self) -> None:
        name = check_str("name of a timer service", self.name)
        if not name:
            raise InvalidValueError("name of a timer service must not be empty")
        for time_domain in TIME_DOMAINS:
            utf("name of a timer service", timer_state_name(name, time_domain))
        object.__setattr__(self, "name", name)
        key_to_write("namespace_type", self.namespace_type)

    def described(self, key: Serializer) -> list[StateDescriptor]:
        """Return the states of timers as the reader finds them: both, as Flink has them."""
        namespace = key_to_write("namespace_type", self.namespace_type)
        return [
            StateDescriptor(
                timer_state_name(self.name, time_domain), "PRIORITY_QUEUE", key, namespace, None
            )
            for time_domain in TIME_DOMAINS
        ]


def timer_state_name(service: str, time_domain: str) -> str:
    """Return the name of the state with the timers of a service in one of the TIME_DOMAINS."""
    return f"{TIMER_STATES}{'event' if time_domain == EVENT_TIME else 'processing'}_{service}"


def described_states(
    states: Iterable[NewState] | None, key: Serializer
) -> tuple[StateDescriptor, ...]:
    """Return the states of an operator, which differ in name, as the reader finds them."""
    made: dict[str, StateDescriptor] = {}
    for state in iterate("states", "descriptors", states):
        if not isinstance(state, NewState):
            raise InvalidTypeError(
                f"states must be descriptors such as ValueStateDescriptor, got {show(state)}"
            )
        new = state.described(key)
        if new[0].name in made:
            raise InvalidValueError(f"states must differ in name, got {show(state.name)} twice")
        made.update((descriptor.name, descriptor) for descriptor in new)
    if not 1 <= len(made) <= MOST_STATES:
        raise InvalidValueError(f"states must be 1 to {MOST_STATES}, got {len(made)}")
    return tuple(made.values())


def serializer_to_write(name: str, type_: object) -> Serializer:
    """Return the serializer of a type of which new state may be, or raise with `name`."""
    if not isinstance(type_, (KeyType, Serializer)):
        raise InvalidTypeError(
            f"{name} must be a key type such as LONG or a Serializer, got {show(type_)}"
        )
    if isinstance(type_, PYFLINK):
        raise UnsupportedKeyTypeError(
            f"{name} {type_!r} cannot be written: it is the type of an operator's keys alone"
        )
    if isinstance(type_, Serializer) and isinstance(unwrapped(type_), TtlSerializer):
        raise InvalidValueError(
            f"{name} must be the type without its last access, got {type_}: pass has_ttl=True"
        )
    try:
        serializer = type_ if isinstance(type_, Serializer) else serializer_of(type_)
        serializer.snapshot_bytes()
        check_writable(serializer)
    except UnsupportedKeyTypeError as error:
        raise UnsupportedKeyTypeError(f"{name} {type_!r} cannot be written: {error}") from None
    return serializer


def operator_key_to_write(type_: object) -> Serializer:
    """Return the serializer of keys of a new operator, of a PyFlink job too, or raise."""
    serializer = written_key(type_) if isinstance(type_, PYFLINK) else type_
    return key_to_write("key_type", serializer)


def key_to_write(name: str, type_: object) -> Serializer:
    """Return the serializer of keys of new state, or of user keys, or raise with `name`."""
    serializer = serializer_to_write(name, type_)
    if not is_in_order(serializer):
        raise UnsupportedKeyTypeError(
            f"{name} {type_!r} cannot be written: RocksDB finds a key by its bytes, and those of "
            "a map or a set are in an order that only Java has"
        )
    return serializer


def new_keyed_states(
    key_type: KeyType | Serializer | None,
    states: Iterable[NewState] | None,
    has_operator_state: bool,
) -> tuple[bytes, tuple[StateDescriptor, ...]]:
    """Return the header of keyed state and its states; both are empty without keyed state."""
    if key_type is None:
        descriptions = () if states is None else iterate("states", "descriptors", states)
        if not has_operator_state or any(True for _ in descriptions):
            raise InvalidTypeError(
                "key_type must be a key type or a Serializer, and None only for an operator with "
                "operator state alone, got None"
            )
        return b"", ()
    key = operator_key_to_write(key_type)
    descriptors = described_states(states, key)
    return write_keyed_header(key.snapshot_bytes(), [*map(write_state, descriptors)]), descriptors
