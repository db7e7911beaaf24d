"""The serializers of CEP refuse what is no value of theirs; Flink's own are in the cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keygroups._serializers.cep import (
    DeweyNumberSerializer,
    EventIdSerializer,
    LockableTypeSerializer,
    NFAStateSerializer,
    NodeIdSerializer,
    SharedBufferEdgeSerializer,
    SharedBufferNodeSerializer,
)
from keygroups._serializers.scalars import LONG
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.savepoint import Serializer
from keygroups.savepoint.values import (
    ComputationState,
    DeweyNumber,
    EventId,
    Lockable,
    NFAState,
    NodeId,
    SharedBufferEdge,
    SharedBufferNode,
)

EVENT_ID = EventIdSerializer()
DEWEY_NUMBER = DeweyNumberSerializer()
NODE_ID = NodeIdSerializer(EVENT_ID)
EDGE = SharedBufferEdgeSerializer(NODE_ID, DEWEY_NUMBER)
NODE = SharedBufferNodeSerializer(EDGE)
LOCKABLE = LockableTypeSerializer(LONG)
STATE = NFAStateSerializer(DEWEY_NUMBER, NODE_ID, EVENT_ID)
OLD_STATE = NFAStateSerializer(DEWEY_NUMBER, NODE_ID, EVENT_ID, has_previous_timestamp=False)

EVENT = EventId(1, 5)
VERSION = DeweyNumber((1, 0))
MATCH = ComputationState("start", None, VERSION, 5, 6, EVENT)
NO_NAME = ComputationState._make((5, *MATCH[1:]))
NO_VERSION = ComputationState._make((*MATCH[:2], None, *MATCH[3:]))

# From which number on, and below the negative of which, a value is none.
BOUNDED: list[tuple[int, Serializer, Callable[[int], object]]] = [
    (2**31, EVENT_ID, lambda number: EventId(number, 5)),
    (2**63, EVENT_ID, lambda number: EventId(1, number)),
    (2**31, DEWEY_NUMBER, lambda number: DeweyNumber((number,))),
    (2**31, LOCKABLE, lambda number: Lockable(number, 5)),
    (2**63, STATE, lambda number: NFAState([MATCH._replace(start_timestamp=number)], [])),
    (2**63, STATE, lambda number: NFAState([MATCH._replace(previous_timestamp=number)], [])),
]


@pytest.mark.parametrize(
    ("serializer", "value", "error", "message"),
    [
        (EVENT_ID, (1, 5), InvalidTypeError, "EVENT_ID must be of class EventId, got"),
        (EVENT_ID, EventId(2**31, 5), InvalidValueError, "id of an EventId must be from"),
        (EVENT_ID, EventId(1, 2**63), InvalidValueError, "timestamp of an EventId must be from"),
        (EVENT_ID, EventId(True, 5), InvalidTypeError, "id of an EventId"),
        (DEWEY_NUMBER, (1, 0), InvalidTypeError, "DEWEY_NUMBER must be of class DeweyNumber"),
        (
            DEWEY_NUMBER,
            DeweyNumber._make([[1]]),
            InvalidTypeError,
            "digits of a DeweyNumber must be of class tu",
        ),
        (DEWEY_NUMBER, DeweyNumber((2**31,)), InvalidValueError, "element 0 of digits of a D"),
        (NODE_ID, (EVENT, "a"), InvalidTypeError, "NODE_ID must be of class NodeId"),
        (NODE_ID, NodeId._make((None, "a")), InvalidValueError, "a EVENT_ID must not be None"),
        (
            NODE_ID,
            NodeId._make((EVENT, 5)),
            InvalidTypeError,
            "page_name of a NodeId must be a str",
        ),
        (
            EDGE,
            (None, VERSION),
            InvalidTypeError,
            "SHARED_BUFFER_EDGE must be of class SharedBufferEdge",
        ),
        (
            EDGE,
            SharedBufferEdge._make((None, None)),
            InvalidValueError,
            "a DEWEY_NUMBER must not be None",
        ),
        (NODE, [], InvalidTypeError, "SHARED_BUFFER_NODE must be of class SharedBufferNode"),
        (
            NODE,
            SharedBufferNode._make([()]),
            InvalidTypeError,
            "edges of a SharedBufferNode must be of class list",
        ),
        (
            NODE,
            SharedBufferNode._make([[5]]),
            InvalidTypeError,
            "element 0 of edges of a SharedBufferNode must be of class Lockable",
        ),
        (LOCKABLE, Lockable._make(("1", 5)), InvalidTypeError, "reference_count of a Lockable"),
        *(
            (serializer, value, InvalidValueError, f".* must be from {-end} to {end - 1}, got")
            for end, serializer, make in BOUNDED
            for value in (make(-end - 1), make(end))
        ),
        (LOCKABLE, Lockable(1, 2**63), InvalidValueError, "value of type LONG must"),
        (STATE, ([], []), InvalidTypeError, "NFA_STATE must be of class NFAState"),
        (
            STATE,
            NFAState._make((None, [])),
            InvalidTypeError,
            "partial_matches of an NFAState must be",
        ),
        (
            STATE,
            NFAState._make(([], (5,))),
            InvalidTypeError,
            "completed_matches of an NFAState must be",
        ),
        (STATE, NFAState._make(([], [5])), InvalidTypeError, "element 0 of completed_m"),
        (STATE, NFAState([NO_NAME], []), InvalidTypeError, "state_name of a ComputationState"),
        (
            STATE,
            NFAState([MATCH._replace(start_timestamp=2**63)], []),
            InvalidValueError,
            "start_timestamp of a ComputationState must be from",
        ),
        (STATE, NFAState([NO_VERSION], []), InvalidValueError, "a DEWEY_NUMBER must not be None"),
        (
            *(STATE, NFAState([MATCH._replace(previous_timestamp=None)], [])),
            *(InvalidTypeError, "previous_timestamp of a ComputationState must be"),
        ),
        (
            *(OLD_STATE, NFAState([], [MATCH])),
            *(InvalidValueError, "previous_timestamp of a ComputationState must be None before"),
        ),
    ],
)
def test_what_is_no_value_is_refused(
    serializer: Serializer, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^value: {message}"):
        serializer.encode(value)


def test_a_state_name_and_a_page_may_be_null() -> None:
    """StringValue.writeString writes a null as 00."""
    node_id = NodeId(EVENT, None)
    assert NODE_ID.encode(node_id) == bytes.fromhex("01 00000001 0000000000000005 00")
    assert NODE_ID.decode(NODE_ID.encode(node_id)) == node_id
    state = NFAState([], [MATCH._replace(state_name=None)])
    assert STATE.decode(STATE.encode(state)) == state


@pytest.mark.parametrize(
    ("serializer", "data"),
    [(DEWEY_NUMBER, "7fffffff"), (NODE, "7fffffff"), (STATE, "7fffffff"), (NODE, "ffffffff")],
)
def test_a_count_makes_no_more_than_there_are_bytes(serializer: Serializer, data: str) -> None:
    with pytest.raises(InvalidValueError, match="data must be a"):
        serializer.decode(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        (EventIdSerializer, EventId._make(("a", 5)), "id of an EventId must be an int"),
        (DeweyNumberSerializer, DeweyNumber._make((5,)), "digits of a DeweyNumber must be of"),
        (
            lambda: NFAStateSerializer(DEWEY_NUMBER, NODE_ID, EVENT_ID),
            NFAState._make((5, [])),
            "partial_matches of an NFAState must be of class list, got 5",
        ),
    ],
)
def test_what_a_field_of_a_record_is_called(
    make: Callable[[], Serializer], value: object, message: str
) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        make().encode(value)
