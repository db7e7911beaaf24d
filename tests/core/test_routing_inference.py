"""Which job is this: the recorded streams of Flink, and what tells candidates apart.

The key groups are Flink's own, of the golden vectors; the subtask of a key group follows by the
formula of KeyGroupRangeAssignment.computeOperatorIndexForKeyGroup.
"""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise

import pytest
from support.golden import lines, read
from support.keys.key_encoding import decode_key, decode_key_type

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    ParallelismError,
    assign_to_key_group,
    infer_routing,
)
from keygroups import assign_key_to_parallel_operator as subtask_of
from keygroups.routing_inference import RoutingCandidate, RoutingInference
from keygroups.types import (
    BIG_INT,
    DOUBLE,
    INT,
    LONG,
    PYFLINK,
    SHORT,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)

Pairs = list[tuple[object, int]]


def is_hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def recorded_streams() -> dict[tuple[str, int], Pairs]:
    """Return, by key type and max parallelism, the keys of the vectors with their key groups."""
    streams: dict[tuple[str, int], dict[object, int]] = defaultdict(dict)
    header, rest = read("keys")
    for line in rest:
        key = decode_key(decode_key_type(line["type"]), line["key"])
        if is_hashable(key) and key == key:
            for groups, key_group in zip(header["max_parallelisms"], line["key_groups"]):
                streams[line["type"], groups].setdefault(key, key_group)
    for line in lines("independent/keys"):
        name = {"Integer": "INT", "Long": "LONG", "String": "STRING"}.get(line["type"])
        if name is not None:
            key = line["value"] if name == "STRING" else int(line["value"])
            for groups, key_group in line["kg"].items():
                streams[f"{name} of the other vectors", int(groups)][key] = key_group
    return {name: list(found.items()) for name, found in streams.items() if len(found) >= 50}


STREAMS = recorded_streams()


def subtasks(pairs: Pairs, max_parallelism: int, parallelism: int) -> Pairs:
    return [(key, group * parallelism // max_parallelism) for key, group in pairs]


def test_there_are_streams_of_many_types() -> None:
    assert len({name for name, _ in STREAMS}) >= 12


@pytest.mark.parametrize(("fields", "types"), [(3, 8), (4, 16), (5, 16)])
def test_sixteen_types_of_tuples_are_tried(fields: int, types: int) -> None:
    """INT or LONG in each field, as a tuple of Java, of PyFlink and of SQL, and two of Scala."""
    found = infer_routing(key_groups=[(tuple(range(fields)), 32767)])
    assert found.tried == 3 * types + 2


@pytest.mark.parametrize("name", sorted({name for name, _ in STREAMS}))
def test_finds_the_job_of_every_recorded_stream(name: str) -> None:
    key_type = decode_key_type(name.removesuffix(" of the other vectors"))
    for (item, groups), pairs in STREAMS.items():
        if item != name or groups == 1:
            continue
        some = random.Random(groups).sample(pairs, 50)
        parallelism = {10: 10, 128: 24}.get(groups, 37)
        found = infer_routing(subtasks(some, groups, parallelism), parallelism, [key_type])
        assert RoutingCandidate(groups, key_type) in found.candidates
        assert {one.max_parallelism for one in found.candidates} == {groups}
        assert found.by_chance < 1e-9
        assert found.nearest is None
        assert found.unexplained == ()


@pytest.mark.parametrize("name", ["INT", "LONG", "STRING"])
def test_finds_plain_types_without_being_told(name: str) -> None:
    pairs = subtasks(STREAMS[f"{name} of the other vectors", 4096][:50], 4096, 5)
    [found] = infer_routing(pairs, 5).candidates
    assert found == RoutingCandidate(4096, decode_key_type(name))


@pytest.mark.parametrize(
    ("key_type", "keys"),
    [
        (PYFLINK(LONG), [-(7**number) for number in range(1, 20)]),
        (SQL_ROW("BIGINT"), [-(7**number) for number in range(1, 20)]),
        (SQL_ROW("STRING"), [f"user-{number}" for number in range(20)]),
        (TUPLE(STRING, LONG), [(f"user-{number}", -number) for number in range(1, 21)]),
        (SQL_ROW("STRING", "INT"), [(f"user-{number}", -number) for number in range(1, 21)]),
        (DOUBLE, [number / 7 for number in range(20)]),
    ],
    ids=repr,
)
def test_suggests_the_key_types_that_the_keys_may_have(
    key_type: KeyType, keys: list[object]
) -> None:
    """The job is the library's own here, which other tests hold against Flink."""
    is_column = isinstance(key_type, SQL_ROW) and len(key_type.fields) == 1
    pairs = [(key, subtask_of((key,) if is_column else key, 720, 40, key_type)) for key in keys]
    assert infer_routing(pairs, 40).candidates == (RoutingCandidate(720, key_type),)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({name for name, _ in STREAMS}))
def test_finds_the_job_of_every_recorded_stream_by_key_groups(name: str) -> None:
    key_type = decode_key_type(name.removesuffix(" of the other vectors"))
    for (recorded, groups), pairs in STREAMS.items():
        if recorded != name or groups == 1:
            continue
        some = random.Random(groups).sample(pairs, 50)
        highest = max(pair[1] for pair in some)
        found = infer_routing(key_groups=some, key_types=[key_type])
        assert found.parallelism is None
        assert RoutingCandidate(groups, key_type) in found.candidates
        assert {candidate.max_parallelism for candidate in found.candidates} == {groups}
        assert found.tried % (32768 - highest) == 0
        assert found.by_chance < 1e-9
        assert (found.nearest, found.unexplained) == (None, ())


FLINKS = [("hello", 35), ("A", 104), ("B", 17)]
"""Key groups of 128 that Flink gives to strings."""


def test_three_key_groups_are_mostly_enough() -> None:
    found = infer_routing(key_groups=dict(FLINKS).items())
    assert found.candidates == (RoutingCandidate(128, STRING),)
    assert found.tried == 3 * (32768 - 104)
    assert found.by_chance == pytest.approx(3 * sum(m**-3 for m in range(105, 32769)))
    assert str(found) == (
        "1 of 97,992 candidates explain all pairs; 0.00014 would by chance\n"
        "  max parallelism 128, STRING"
    )


def test_keys_that_decide_between_max_parallelisms_of_key_groups() -> None:
    found = infer_routing(key_groups=FLINKS[:2], key_types=[STRING])
    assert RoutingCandidate(128, STRING) == found.candidates[0]
    assert len(found.candidates) > 1
    key = found.deciding_keys[0]
    groups = [groups for groups, key_type in found.candidates if key_type == STRING]
    assert len({assign_to_key_group(key, count, STRING) for count in groups}) > 1
    assert f"keys that decide: {key!r}" in str(found)


def test_powers_of_two_come_first_of_key_groups() -> None:
    groups = [
        candidate.max_parallelism
        for candidate in infer_routing(key_groups=[("B", 17)]).candidates
        if candidate.key_type == STRING
    ]
    powers = [number for number in groups if number.bit_count() == 1]
    assert 128 in powers
    assert len(powers) < len(groups)
    assert groups == [*sorted(powers), *sorted({*groups}.difference(powers))]


def test_names_the_key_groups_that_contradict() -> None:
    pairs = STREAMS["STRING of the other vectors", 128][:40]
    key, group = pairs[7]
    pairs[7] = (key, (group + 1) % 128)
    found = infer_routing(key_groups=pairs)
    assert found.candidates == ()
    assert found.nearest == RoutingCandidate(128, STRING)
    assert found.unexplained == (pairs[7],)


def test_the_highest_key_group_has_one_max_parallelism() -> None:
    keys = (key for key in range(10**6) if assign_to_key_group(key, 32768, INT) == 32767)
    found = infer_routing(key_groups=[(next(keys), 32767)], key_types=[INT])
    assert {candidate.max_parallelism for candidate in found.candidates} == {32768}


def test_keys_that_decide_between_integer_and_long() -> None:
    pairs = [(key, group) for key, group in STREAMS["INT of the other vectors", 128]]
    positive = [
        pair for pair in subtasks(pairs, 128, 16) if isinstance(pair[0], int) and pair[0] >= 0
    ]
    found = infer_routing(positive[:50], 16)
    assert [one.key_type for one in found.candidates] == [INT, LONG]
    key = found.deciding_keys[0]
    assert isinstance(key, int)
    assert key < 0
    assert "keys that decide: " in str(found)


def test_tuples_that_decide_between_integer_and_long() -> None:
    """The job is the library's own here, which other tests hold against Flink."""
    key_types = [TUPLE(STRING, INT), TUPLE(STRING, LONG)]
    keys = [(f"user-{number}", number) for number in range(20)]
    pairs = [(key, subtask_of(key, 720, 40, key_types[0])) for key in keys]
    found = infer_routing(pairs, 40)
    assert found.candidates == tuple(RoutingCandidate(720, key_type) for key_type in key_types)
    for key in found.deciding_keys:
        first, second = (subtask_of(key, 720, 40, key_type) for key_type in key_types)
        assert first != second
    assert len(found.deciding_keys) == 1


def test_a_text_has_ten_of_each() -> None:
    def said(count: int) -> tuple[str, str]:
        candidates = tuple(RoutingCandidate(128 + index, INT) for index in range(count))
        nearest, pairs = (
            RoutingCandidate(9, LONG),
            tuple((f"k{index}", 5) for index in range(count)),
        )
        return (
            str(RoutingInference(8, candidates, 65_522, 1 / 3, (), None, ())),
            str(RoutingInference(8, (), 65_522, 1 / 3, (), nearest, pairs)),
        )

    for count, more in ((10, ""), (1_011, "\n  and 1,001 more")):
        explains, nearest = said(count)
        assert explains == (
            f"{count:,} of 65,522 candidates explain all pairs; 0.33 would by chance"
            + "".join(f"\n  max parallelism {128 + index}, INT" for index in range(10))
            + more
        )
        assert nearest == (
            "not one of these: none of 65,522 candidates explains all pairs\n"
            "nearest: max parallelism 9, LONG, but for "
            + ", ".join(f"('k{index}', 5)" for index in range(10))
        )


def test_keys_that_decide_between_max_parallelisms() -> None:
    """With three pairs many explain them; the most usual come first, and more keys help."""
    pairs = subtasks(STREAMS["STRING of the other vectors", 128], 128, 2)
    few = infer_routing(pairs[:3], 2)
    assert few.candidates[0].max_parallelism == 128  # the default for a parallelism of 2
    assert len(few.candidates) > 1000
    assert few.by_chance == pytest.approx(few.tried / 8)
    assert "more" in str(few)
    assert len(few.deciding_keys) == 5
    powers = [one.max_parallelism for one in few.candidates if one.key_type == STRING][:3]
    assert all(groups & groups - 1 == 0 for groups in powers)
    (first, subtask), *others = pairs[:3]
    one_is_a_member = infer_routing([(Name(first), subtask), *others], 2, [STRING])
    assert len(one_is_a_member.deciding_keys) == 5


def test_the_most_usual_come_first() -> None:
    found = infer_routing([("a", subtask_of("a", 128, 3))], 3)
    of_type: dict[KeyType, list[int]] = defaultdict(list)
    for max_parallelism, key_type in found.candidates:
        of_type[key_type].append(max_parallelism)
    types = [STRING, PYFLINK(STRING), SQL_ROW("STRING")]
    for one, other in pairwise(found.candidates):
        if one.max_parallelism == other.max_parallelism:
            assert types.index(one.key_type) < types.index(other.key_type)
    [first, *rest] = of_type[STRING]
    assert first == 128
    powers = [groups for groups in rest if groups.bit_count() == 1]
    multiples = [groups for groups in rest if groups % 3 == 0]
    others = {*rest}.difference(powers, multiples)
    assert rest == [*sorted(powers), *sorted(multiples), *sorted(others)]
    assert len(powers) > 2
    assert len(multiples) > 1000


def test_keys_of_equal_hashes_say_the_same() -> None:
    """As the String.hashCode of "Aa" and "BB"."""
    found = infer_routing([("Aa", 0), ("BB", 0)], 16384)
    assert found.by_chance == found.tried / 16384


def test_sixteen_types_of_a_tuple_are_tried() -> None:
    key_type = TUPLE(LONG, LONG, LONG, LONG)
    keys = [(-number, -7 * number, -11 * number, -13 * number) for number in range(1, 5)]
    pairs = [(key, subtask_of(key, 32768, 32000, key_type)) for key in keys]
    assert RoutingCandidate(32768, key_type) in infer_routing(pairs, 32000).candidates


class Name(str):
    """As members of a StrEnum are."""


def test_not_one_of_these() -> None:
    dealt = random.Random(0)
    pairs = [(f"user-{number}", dealt.randrange(4)) for number in range(50)]
    found = infer_routing(pairs, 4)
    assert found.candidates == ()
    assert found.nearest is None
    assert str(found).startswith("not one of these")


def test_names_the_pairs_that_contradict() -> None:
    pairs = subtasks(STREAMS["STRING of the other vectors", 128][:50], 128, 24)
    key, subtask = pairs[7]
    pairs[7] = (key, (subtask + 1) % 24)
    found = infer_routing(pairs, 24)
    assert found.candidates == ()
    assert found.nearest == RoutingCandidate(128, STRING)
    assert found.unexplained == (pairs[7],)
    assert repr(key)[:20] in str(found)


@pytest.mark.parametrize(("count", "wrong"), [(19, 1), (40, 2), (40, 3)])
def test_one_in_twenty_pairs_may_contradict(count: int, wrong: int) -> None:
    pairs = subtasks(STREAMS["STRING of the other vectors", 128][:count], 128, 24)
    moved = [(key, (subtask + 12) % 24) for key, subtask in pairs[:wrong]]
    found = infer_routing([*moved, *pairs[wrong:]], 24, [STRING])
    assert found.candidates == ()
    if wrong * 20 <= count:
        assert (found.nearest, found.unexplained) == (RoutingCandidate(128, STRING), (*moved,))
    else:
        assert (found.nearest, found.unexplained) == (None, ())


def test_the_nearest_has_the_fewest_that_contradict() -> None:
    """One of 40 here, and of a larger max parallelism two."""
    keys = [f"user-{number}" for number in range(2_000)]
    at_128, at_4096 = ([subtask_of(key, groups, 24) for key in keys] for groups in (128, 4096))
    same = [pair for pair, other in zip(zip(keys, at_128), at_4096) if pair[1] == other]
    [unlike] = [pair for pair, other in zip(zip(keys[:1], at_128), at_4096) if pair[1] != other]
    wrong = (same[0][0], (same[0][1] + 12) % 24)
    found = infer_routing([wrong, unlike, *same[1:39]], 24, [STRING])
    assert (found.nearest, found.unexplained) == (RoutingCandidate(128, STRING), (wrong,))


@pytest.mark.long
def test_one_subtask_says_nothing() -> None:
    found = infer_routing([("a", 0)], 1)
    assert len(found.candidates) == found.tried == 3 * 32768
    assert found.deciding_keys == ()
    assert "decide" not in str(found)


def test_keys_of_no_type_that_decides() -> None:
    """Keys of which none can be made up, and tuples of unlike sizes, go by the types given."""
    assert infer_routing([(0.5, 0)], 2).deciding_keys == ()
    with pytest.raises(InvalidTypeError, match="key_types must have a key type of all keys"):
        infer_routing([((1,), 0), ((1, 2), 0)], 2)
    with pytest.raises(InvalidTypeError, match="key_types must have"):
        infer_routing([(b"bytes", 0)], 2)
    assert infer_routing([(2**70, 0), (1, 1)], 2, [BIG_INT, SHORT]).tried == 32767


@pytest.mark.parametrize("name", ["FLOAT", "DOUBLE", "BIG_DEC", "SQL_ROW('DOUBLE')"])
def test_keys_that_only_python_takes_for_equal(name: str) -> None:
    """0.0 and -0.0, or 1.5 and 1.50, are two keys with the key groups of the vectors.

    To take the second for the first would find a candidate that sends it elsewhere.
    """
    header, rest = read("keys")
    key_type = decode_key_type(name)
    at = header["max_parallelisms"].index(1000)
    found: Pairs = [
        (decode_key(key_type, line["key"]), line["key_groups"][at])
        for line in rest
        if line["type"] == name
    ]
    pairs = [(key, group) for key, group in found if key == key]
    candidate = RoutingCandidate(1000, key_type)
    assert candidate in infer_routing(key_groups=pairs, key_types=[key_type]).candidates
    equal = [
        (pair, other)
        for index, pair in enumerate(pairs)
        for other in pairs[:index]
        if pair[0] == other[0] and pair[1] != other[1]
    ]
    assert equal
    for (key, group), (other, _) in equal:
        wrong = infer_routing(key_groups=[(key, group), (other, group)], key_types=[key_type])
        assert candidate not in wrong.candidates


@pytest.mark.parametrize(
    ("observed", "parallelism", "error", "message"),
    [
        ([], 2, InvalidValueError, "observed must have at least one pair"),
        ([("a", 2)], 2, InvalidValueError, "subtask of a pair of observed must be from 0 to 1"),
        (
            [("a", 0), ("a", 1)],
            2,
            InvalidValueError,
            "key 'a' of observed is in subtask 0 and in 1",
        ),
        (["ab"], 2, InvalidTypeError, "pairs of a key and its subtask, got 'ab'"),
        ([([], 0)], 2, InvalidTypeError, "keys of observed must be hashable"),
        ([("a", 0)], 0, ParallelismError, "parallelism must be from 1"),
        (7, 2, InvalidTypeError, "observed must be an iterable"),
        (None, 2, InvalidTypeError, "observed must be an iterable"),
        ([("a", 0)], None, ParallelismError, "parallelism must be an int, got None"),
        (None, None, InvalidValueError, "observed and parallelism, or key_groups, must be given"),
    ],
)
def test_refusals(
    observed: object, parallelism: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        infer_routing(observed, parallelism)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key_groups", "error", "message"),
    [
        ([], InvalidValueError, "key_groups must have at least one pair"),
        (
            [("a", 32768)],
            InvalidValueError,
            "key group of a pair of key_groups must be from 0 to 32767, got 32768",
        ),
        ([("a", 0), ("a", 1)], InvalidValueError, "'a' of key_groups is in key group 0 and in 1"),
        (["ab"], InvalidTypeError, "key_groups must be pairs of a key and its key group, got"),
        ([({}, 0)], InvalidTypeError, "keys of key_groups must be hashable"),
        (7, InvalidTypeError, "key_groups must be an iterable of pairs of a key and its key gro"),
    ],
)
def test_refusals_of_key_groups(key_groups: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        infer_routing(key_groups=key_groups)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"), [("observed", [("a", 0)]), ("observed", []), ("parallelism", 128)]
)
def test_refuses_both_forms_at_once(name: str, value: object) -> None:
    with pytest.raises(InvalidValueError, match=f"^{name} must not go with key_groups, got"):
        infer_routing(key_groups=FLINKS, **{name: value})  # type: ignore[arg-type]


def test_refuses_what_is_no_key_type() -> None:
    with pytest.raises(InvalidTypeError, match="key type must be a key type such as INT"):
        infer_routing([("a", 0)], 2, ["STRING"])  # type: ignore[list-item]
    with pytest.raises(InvalidTypeError, match=r"^key_types must be an iterable of key types"):
        infer_routing([("a", 0)], 2, STRING)  # type: ignore[arg-type]  # A user may do so.
    assert infer_routing([("a", 0)], 32768, [STRING] * 100).tried == 3
    with pytest.raises(InvalidValueError, match="key_types must be at most 100"):
        infer_routing([("a", 0)], 2, [STRING] * 101)
