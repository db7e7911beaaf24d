"""The classes of values in Flink's state: a table of all, and those that Python lacks.

A value is one of Python's own classes where that is exact, and one of this module's or of
`keygroups.savepoint` where it is not, or where Python has none. `encode` of a serializer, and a
`SavepointWriter`, take what is read.

| of Flink or Java | in Python |
|---|---|
| Boolean to Double, String, Character, their Value types | bool, int, float, str |
| BigInteger, BigDecimal | int; Decimal with the scale of Java's |
| Instant, java.sql.Timestamp | datetime in UTC, or `Instant` |
| LocalDate, LocalTime, LocalDateTime | date, time, datetime, or the class of that name here |
| java.util.Date, java.sql.Date, java.sql.Time | datetime in UTC, or epoch milliseconds |
| byte[]; other arrays of primitives; boolean[], other arrays | bytes; array.array; list |
| List, Set, Map, SortedMap | list, set, dict; see below |
| Nullable, Void | the value or None |
| Option, Optional | None or `Some` |
| Either, Try of Scala | `Left`, `Right`; `Success`, `Failure` |
| enum | the name of the constant, str |
| tuple, case class; Row | tuple; `Row` with its row kind |
| POJO | `Pojo` |
| Avro | as its schema says, a record dict; of a union with several branches (branch, value) |
| Kryo | see below |
| SQL: rows, arrays, maps and multisets | `Row`, list, dict |
| SQL: DECIMAL, DATE, TIME, TIMESTAMP | Decimal, date, time, datetime, or `TimestampData`, int |
| SQL: INTERVAL, RAW, VARIANT, BITMAP | months or milliseconds, bytes, `Variant`, `Bitmap` |
| windows, timers, joins, CEP | the classes here, with the names of Flink's |
| Java's own serialization, pickles of PyFlink | bytes; a String of Java's is a str |

A set is a frozenset, where it is in a set or the key of a dict; what Python cannot hash, or takes
two of for one, such as 0.0 and -0.0, makes the set a list and the dict a list of pairs.

Kryo is read where the class is one of Java's own, such as a collection, a UUID, a date: in the
classes above and, for what Python has none, such as `ZonedDateTime`, those below. An object of
the job's own class is a `Pojo` where `serializers` of `read_savepoint` say its fields, in a
`KryoFields`, and the name of a constant where they say those, in a `KryoEnum`. Without that it is
the bytes that Kryo wrote, where they are framed, and so is a `Value` of the job, or a POJO of a
class that its snapshot does not have. Where such a value is not framed, as in the hashmap
backend's own format, the entries after it are refused.
"""

from keygroups._serializers.jvm.kryo_classes import KryoEnum, KryoFields
from keygroups._values.bitmaps import Bitmap
from keygroups._values.cep import (
    ComputationState,
    DeweyNumber,
    EventId,
    Lockable,
    NFAState,
    NodeId,
    SharedBufferEdge,
    SharedBufferNode,
)
from keygroups._values.java_values import (
    Failure,
    Instant,
    Left,
    LocalDate,
    LocalDateTime,
    LocalTime,
    Pojo,
    Right,
    Some,
    Success,
    Variant,
)
from keygroups._values.kryo import (
    Calendar,
    Duration,
    Locale,
    MonthDay,
    OffsetDateTime,
    OffsetTime,
    Period,
    YearMonth,
    ZonedDateTime,
)
from keygroups._values.rows import GlobalWindow, Row, TimeWindow, TtlValue
from keygroups._values.sql import (
    CountWindow,
    MetaSqnInfo,
    Node,
    RowSqnInfo,
    TimestampData,
    WindowKey,
)
from keygroups._values.streaming import (
    BufferEntry,
    LatencyMarker,
    NextTransactionalIdHint,
    RecordAttributes,
    StreamRecord,
    TaggedUnion,
    TransactionHolder,
    TwoPhaseCommitState,
    Watermark,
    WatermarkStatus,
)

__all__ = [
    "Bitmap",
    "BufferEntry",
    "Calendar",
    "ComputationState",
    "CountWindow",
    "DeweyNumber",
    "Duration",
    "EventId",
    "Failure",
    "GlobalWindow",
    "Instant",
    "KryoEnum",
    "KryoFields",
    "LatencyMarker",
    "Left",
    "LocalDate",
    "LocalDateTime",
    "LocalTime",
    "Locale",
    "Lockable",
    "MetaSqnInfo",
    "MonthDay",
    "NFAState",
    "NextTransactionalIdHint",
    "Node",
    "NodeId",
    "OffsetDateTime",
    "OffsetTime",
    "Period",
    "Pojo",
    "RecordAttributes",
    "Right",
    "Row",
    "RowSqnInfo",
    "SharedBufferEdge",
    "SharedBufferNode",
    "Some",
    "StreamRecord",
    "Success",
    "TaggedUnion",
    "TimeWindow",
    "TimestampData",
    "TransactionHolder",
    "TtlValue",
    "TwoPhaseCommitState",
    "Variant",
    "Watermark",
    "WatermarkStatus",
    "WindowKey",
    "YearMonth",
    "ZonedDateTime",
]
__dir__ = __all__.copy
