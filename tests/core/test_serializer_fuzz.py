"""Damaged snapshots and values of every serializer: whatever byte is another or missing.

Of what Flink wrote (`serializer_cases.py`), and of what connectors and Beam do, each byte is
changed in three ways, and the bytes are cut at each place; the default suite takes some of them. A
reader may then raise what `keygroups/_serializers/base.py` says and nothing else, and what is cut
must end too early, so that whoever has more bytes fetches them. `pytest -rP` shows what came of
how many.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

import pytest
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.bytes.beam_bytes import CODERS, OF_KEYS, beam_snapshot, stream
from support.bytes.serializer_cases import Case, Value, cases
from support.bytes.sink_bytes import kafkas, producer_bytes, started, two_phases
from support.inside.serializers import REGISTRY, TRUNCATED, UnreadableError

from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint import Serializer

VERSION_OF_SNAPSHOTS = b"\0\0\0\2"
FLIPS = (0x01, 0x80, 0xFF)
FEW = 20  # damages of a group, of each kind of test
LONGEST = 2_000  # bytes of a value that is damaged, as longer ones are like these
FLOOR = 1 << 20  # bytes of memory that may be taken for however few there are
TIMES = 400  # bytes in memory that one byte may take: a list's of empty lists are the most

GROUPS: dict[str, list[Case]] = defaultdict(list)
for case in cases():
    GROUPS[case.group].append(case)


def by_hand(name: str, snapshot: bytes, *values: bytes) -> None:
    """Add a case of a serializer that Flink's own jars do not have, in the group of its name."""
    read = tuple(Value(None, value, True) for value in values)
    case = Case(name, ["2.3.0"], "", None, False, None, snapshot, read)
    GROUPS[case.group].append(case)


KAFKA_IDS = sb.i32(2) + sb.utf("tx-1") + sb.utf("\U0001f600")
for version in ("", "011"):
    transaction, ids = kafkas("TransactionState", version), kafkas("ContextState", version)
    by_hand(f"kafka.transaction{version}", transaction, started("tx-1")[:-8], started(None)[:-8])
    by_hand(f"kafka.ids{version}", ids, KAFKA_IDS)
    by_hand(f"kafka.hint{version}", kafkas("NextTransactionalIdHint", version), bytes(12))
    state = b"\1" + producer_bytes(started("tx-2"), [started("tx-1")], ("tx-1", "tx-2"))
    by_hand(f"kafka.state{version}", two_phases(transaction, ids), state)
for is_legacy in (True, False):
    for coder, value in ((OF_KEYS, b"\3bob"), (f"{CODERS}StringUtf8Coder", b"\3\xe2\x82\xac")):
        coders = beam_snapshot(stream(java.instance(coder)), is_legacy=is_legacy)
        by_hand(f"beam.{coder}", coders, value)
PAIR = "org.apache.flink.api.scala.typeutils.Tuple2CaseClassSerializerSnapshot"
by_hand(
    "scala.Tuple2",
    sb.composite(PAIR, 2, [sb.simple("Int")] * 2, sb.utf("scala.Tuple2$mcII$sp")),
    bytes(8),
)

all_or_few = pytest.mark.parametrize(
    "most", [FEW, pytest.param(10**9, marks=pytest.mark.slow)], ids=["few", "all"]
)
each_group = pytest.mark.parametrize("group", GROUPS)

Sample = tuple[Case, Serializer, bytes]


def read_snapshot(case: Case, data: bytes) -> Serializer:
    return Serializer.from_snapshot(data, kryo_version=case.kryo_version)


def snapshots(group: str) -> Iterator[Sample]:
    """Yield the snapshots that are known, and what they are of."""
    for case in GROUPS[group]:
        snapshot = VERSION_OF_SNAPSHOTS + case.snapshot
        try:
            yield case, read_snapshot(case, snapshot), snapshot
        except SavepointError:
            continue


@cache
def values(group: str) -> list[Sample]:
    """Return the values that are read."""
    return [
        (case, serializer, value.data)
        for case, serializer, _ in snapshots(group)
        for value in case.values
        if serializer.read is not None and 0 < len(value.data) <= LONGEST
        if outcome(serializer, value.data) == "a value"
    ]


def damages(samples: Iterable[Sample], most: int) -> Iterator[tuple[Sample, str, bytes]]:
    """Yield so many damages, of all samples alike: what was done, and the bytes then."""
    ways = len(FLIPS) + 1
    samples = list(samples)
    step = max(1, sum(len(data) for *_, data in samples) * ways // most)
    step += step % 2 == 0  # so that every way has a turn
    skip = 0
    for sample in samples:
        *_, data = sample
        for number in range(skip, ways * len(data), step):
            pos, way = divmod(number, ways)
            if way == len(FLIPS):
                yield sample, f"cut at {pos}", data[:pos]
            else:
                flipped = bytes([data[pos] ^ FLIPS[way]])
                yield sample, f"{pos} ^ {FLIPS[way]:#x}", data[:pos] + flipped + data[pos + 1 :]
        skip = (skip - ways * len(data)) % step


def outcome(serializer: Serializer, data: bytes) -> str:
    """Read a value, and say what came of it."""
    assert serializer.read is not None
    try:
        _, end = serializer.read(data, 0)
    except TRUNCATED:
        return "too few bytes"
    except UnreadableError:
        return "not readable"
    except ValueError:
        return "an error"
    assert 0 <= end <= len(data)
    return "a value"


def test_each_serializer_is_in_a_group() -> None:
    seen: set[type[Serializer]] = set()

    def see(serializer: Serializer) -> None:
        seen.add(type(serializer))
        for part in serializer.parts:
            see(part)

    for group in GROUPS:
        for _, serializer, _ in snapshots(group):
            see(serializer)
    assert {*REGISTRY.values()} <= seen


@all_or_few
@each_group
def test_snapshots(group: str, most: int) -> None:
    counts: Counter[str] = Counter()
    for (case, serializer, _), damage, damaged in damages(snapshots(group), most):
        try:
            other = read_snapshot(case, damaged)
            counts["the same" if other == serializer else "another"] += 1
            for value in case.values[:1]:
                other.decode(value.data)
        except KeyGroupsError:
            counts["an error"] += 1
        except Exception as error:
            raise AssertionError(f"{case}, {damage}: {error!r}") from error
    print(group, dict(counts))


@all_or_few
@each_group
def test_values(group: str, most: int) -> None:
    counts: Counter[str] = Counter()
    for (case, serializer, data), damage, damaged in damages(values(group), most):
        place = f"{case}, {damage} of {data.hex()}"
        try:
            received = outcome(serializer, damaged)
        except Exception as error:
            raise AssertionError(f"{place}: {error!r}") from error
        counts[received] += 1
        assert received == "too few bytes" or not damage.startswith("cut"), place
        if received == "a value":
            continue
        with pytest.raises(KeyGroupsError):
            serializer.decode(damaged)
    print(group, dict(counts))


@all_or_few
@each_group
def test_memory(group: str, most: int) -> None:
    """A count that is too high, wherever, makes no more room than there are bytes."""
    highest = 0.0
    for (case, serializer, data), damage, _ in damages(values(group), most):
        if not damage.startswith("cut"):
            continue
        pos = int(damage.split()[-1])
        for count in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\xff\xff"):
            damaged = data[:pos] + count + data[pos + 4 :]
            tracemalloc.start()
            try:
                outcome(serializer, damaged)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert peak <= FLOOR + TIMES * len(data), (str(case), pos, peak)
            highest = max(highest, peak / len(data))
    print(group, f"{highest:.0f} bytes for each")
