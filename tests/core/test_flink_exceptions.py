"""What exceptions of Flink say.

The texts are those of public reports and of Flink's classes; `tests/flink` has the classes say
them. Which subtask has a range is worked out there by hand from KeyGroupRangeAssignment.
"""

from __future__ import annotations

import pytest

from keygroups import InvalidTypeError, InvalidValueError, KeyGroupRange, ParallelismError
from keygroups.flink_exceptions import ExplainedException, explain_exception
from keygroups.key_group_range import (
    compute_key_group_range_for_operator_index,
    compute_operator_indexes_for_key_group_range,
)

NOT_IN_RANGE = (
    "java.lang.IllegalArgumentException: Key group 193 is not in KeyGroupRange"
    "{startKeyGroup=144, endKeyGroup=179}. Unless you're directly using low level state access "
    "APIs, this is most likely caused by non-deterministic shuffle key (hashCode and equals "
    "implementation).\n\tat org.apache.flink.runtime.state.KeyGroupRangeOffsets.x(X.java:37)"
)
ARRAY = "java.lang.ArrayIndexOutOfBoundsException: "
FRAME = "\n\tat org.apache.flink.runtime.state.heap.StateTable.getMapForKeyGroup(StateTable.java)"
CASES: dict[str, list[str]] = {
    NOT_IN_RANGE: [
        "a record or timer of key group 193 came to a subtask that has the key groups [144, 179]",
        "no subtask has exactly these at the max parallelism of a job that sets none",
    ],
    "Key group index out of range of key group range [16, 32).": [
        "a record or timer came to a subtask that has the key groups [16, 31]",
        "at max parallelism 128 that is subtask 1 of 8",
    ],
    "key group from 43 to 86 does not contain 97": [
        "a record or timer of key group 97 came to a subtask that has the key groups [43, 85]",
        "at max parallelism 128 that is subtask 1 of 3; key group 97 belongs to subtask 2",
    ],
    "Key Group 97 does not belong to the local range.": [
        "a timer of key group 97 came to a subtask that does not have this one"
    ],
    f"{ARRAY}-49{FRAME}": [
        "a record or timer came to a subtask that does not have its key group: it is 49 below "
        "the first key group of the subtask"
    ],
    f"{ARRAY}Index 64 out of bounds for length 43{FRAME}": [
        "a record or timer came to a subtask that does not have its key group: it is 64 above "
        "the first key group of the subtask, and not one of its own",
        "the subtask has 43 key groups",
    ],
    "Failed to rollback to checkpoint/savepoint file:/a/b. Cannot map checkpoint/savepoint state "
    "for operator cbc357ccb763df2852fee8c4fc7d55f2 to the new program": [
        "the savepoint has state of operator cbc357ccb763df2852fee8c4fc7d55f2, and no operator of "
        "the new job has that id"
    ],
    "Max parallelism mismatch between checkpoint/savepoint state and new program. Cannot map "
    "operator cbc3 with max parallelism 128 to new program with max parallelism 256. This": [
        "operator cbc3 was written at max parallelism 128, and the job has 256"
    ],
    "The state for task 0a448493b4782967b150582570326227 can not be restored. The maximum "
    "parallelism (96) of the restored state is lower than the configured parallelism (128).": [
        "the state of 0a448493b4782967b150582570326227 has 96 key groups, and 128 subtasks would "
        "share them: one key group is the least that a subtask can have"
    ],
    "The maximum parallelism (128) with which the latest checkpoint of the execution job vertex "
    "ExecutionJobVertex@1b has been taken and the current maximum parallelism (256) changed.": [
        "ExecutionJobVertex@1b was written at max parallelism 128, and the job has 256"
    ],
    "StateMigrationException: The new key serializer (a.B@1) must be compatible with the": [
        "the key serializer of the job cannot read what the savepoint has"
    ],
    "For heap backends, the new state serializer (a.B@1) must not be incompatible with the": [
        "the state serializer of the job cannot read what the savepoint has"
    ],
    "the new priority queue serializer must not be incompatible.": [
        "the priority queue serializer of the job cannot read what the savepoint has"
    ],
    "The new value typeSerializer for broadcast state must not be incompatible.": [
        "the value serializer of the job cannot read what the savepoint has"
    ],
    "maxParallelism is out of bounds 0 < maxParallelism <= 32768. Found: 0": [
        "a max parallelism is from 1 to 32768, and 0 is not"
    ],
    "Maximum parallelism must be between 1 and 32768. Found: 40000": [
        "a max parallelism is from 1 to 32768, and 40000 is not"
    ],
    "Setting max parallelism is not in valid bounds (1..32768), found: -5": [
        "a max parallelism is from 1 to 32768, and -5 is not"
    ],
    "Vertex Map -> Sink's parallelism (5) is higher than the max parallelism (4). Please": [
        "the vertex has a parallelism of 5 and a max parallelism of 4"
    ],
    "java.lang.NullPointerException: Assigned key must not be null!": [
        "the key selector returned null, which Flink cannot send anywhere"
    ],
}


@pytest.mark.parametrize("text", CASES)
def test_what_a_message_says(text: str) -> None:
    says = CASES[text]
    for around in (text, f"2026-01-01 ERROR job failed\n{text}\n\tat a.B.c(B.java:1)"):
        explained = explain_exception(around)
        assert list(explained.says[: len(says)]) == says
        assert explained.matched in text
        assert explained.causes
        assert explained.next_checks


def test_the_text_has_all_parts_in_order() -> None:
    explained = ExplainedException("m", ("says",), ("first", "second"), ("do this",))
    assert str(explained).splitlines() == [
        *("says", "causes, the likeliest first:", "  1. first", "  2. second", "next:"),
        "  1. do this",
    ]


def test_the_job_decides_which_subtask_it_was() -> None:
    says = explain_exception(NOT_IN_RANGE, 720).says[1:]
    assert says == (
        "at max parallelism 720 that is subtask 4 of 20; key group 193 belongs to subtask 5",
    )
    explained = explain_exception(NOT_IN_RANGE, 720, 20)
    assert explained.says[1:] == says
    assert explained.next_checks[0].startswith("keygroups trace KEY -m 720 -p 20 --type TYPE")
    assert explained.next_checks[0].endswith(
        "if its key group is 193, the record was sent to the wrong subtask; if not, the key's "
        "hash or its selector is not stable"
    )
    assert explained.next_checks[1].startswith("infer_routing(key_groups=[(key, key group), ...])")
    assert explain_exception(NOT_IN_RANGE, 720, 30).says[1:] == (
        "no subtask of 30 has exactly these at the max parallelism 720",
    )
    assert explain_exception(NOT_IN_RANGE, 128).says[1:] == (
        "which max parallelism 128 does not have: it is 194 at least",
    )


@pytest.mark.parametrize("max_parallelism", [None, 128])
def test_the_last_key_group_is_one_of_the_job(max_parallelism: int | None) -> None:
    """Of 128 it is key group 127; its subtask is the last one of three."""
    text = "key group from 43 to 86 does not contain 127"
    assert explain_exception(text, max_parallelism, 3).says[1:] == (
        "at max parallelism 128 that is subtask 1 of 3; key group 127 belongs to subtask 2",
    )
    says = explain_exception("Key Group 127 does not belong to the local range", 128, 3).says
    assert says[1:] == ("it belongs to subtask 2 of 3",)
    says = explain_exception("Key Group 128 does not belong to the local range", 128, 3).says
    assert says[1:] == ("which max parallelism 128 does not have",)


def test_a_job_of_one_key_group() -> None:
    says = explain_exception("Key group index out of range of key group range [0, 1)", 1).says
    assert says[1:] == ("at max parallelism 1 that is subtask 0 of 1",)


def test_a_job_that_sets_none_has_the_default_of_its_parallelism() -> None:
    """At 256 and above [16, 31] is of 16 subtasks and more, whose default is 128."""
    explained = explain_exception("Key group index out of range of key group range [16, 32)")
    assert explained.says[1:] == ("at max parallelism 128 that is subtask 1 of 8",)
    assert "if its key group is one that the subtask does not" in explained.next_checks[0]
    # By default 86 subtasks have 256 key groups, where those of subtask 1 are 3 to 5.
    says = explain_exception("key group from 3 to 6 does not contain 6", parallelism=86).says
    assert says[1:] == (
        "at max parallelism 256 that is subtask 1 of 86; key group 6 belongs to subtask 2",
    )
    says = explain_exception("key group from 0 to 2 does not contain 9").says
    assert len(says) == 8
    assert (
        says[1] == "at max parallelism 128 that is subtask 0 of 64; key group 9 belongs to "
        "subtask 4"
    )
    assert says[-1].startswith("and 21,")
    assert says[-1].endswith(" more: the job's max parallelism and parallelism decide")


@pytest.mark.parametrize(("first", "last", "more"), [(0, 4, 0), (21, 23, 1)])
def test_six_places_are_named(first: int, last: int, more: int) -> None:
    """So many parallelisms have the range at max parallelism 128."""
    places = compute_operator_indexes_for_key_group_range(128, KeyGroupRange(first, last))
    assert len(places) == 6 + more
    text = f"key group from {first} to {last + 1} does not contain 99"
    says = explain_exception(text, 128).says
    assert [" that is subtask " in output for output in says[1:]] == [True] * 6 + [False] * more
    decides = "and 1 more: the job's max parallelism and parallelism decide"
    assert [output for output in says if " more: " in output] == [decides] * more


@pytest.mark.parametrize(("index", "length", "side"), [(-1, 5, "1 below"), (0, 0, "0 above")])
def test_which_side_of_the_array_it_is(index: int, length: int, side: str) -> None:
    """Index 0 of an array without key groups is not below it."""
    text = f"ArrayIndexOutOfBoundsException: Index {index} out of bounds for length {length}\n"
    text += (
        "\tat org.apache.flink.runtime.state.heap.StateTable.getMapForKeyGroup(StateTable.java)"
    )
    assert f"it is {side} the first key group" in explain_exception(text).says[0]


def test_a_timer_of_a_key_group_elsewhere() -> None:
    text = "Key Group 97 does not belong to the local range."
    assert explain_exception(text, 128, 3).says[1:] == ("it belongs to subtask 2 of 3",)
    assert explain_exception(text, 64, 3).says[1:] == ("which max parallelism 64 does not have",)
    assert explain_exception(text, 128).says[1:] == ()


def test_a_rescale_above_the_max_parallelism_names_the_ways_out() -> None:
    [text] = [text for text in CASES if "(96)" in text]
    first, second = explain_exception(text).next_checks
    assert first.startswith("a parallelism of at most 96 restores; at 96 every subtask has one")
    assert "--set-max-parallelism" in second
    [text] = [text for text in CASES if "(5) is higher" in text]
    assert "at 4 every" in explain_exception(text).next_checks[0]


def test_keys_are_never_migrated() -> None:
    text = "The new key serializer (a) must be compatible with the previous key serializer (b)."
    changed, other = explain_exception(text).causes
    assert changed.endswith("keys are never migrated")
    assert other.startswith("the type is another one")
    causes = explain_exception(text.replace("key", "state")).causes
    assert len(causes) == 2
    assert not any("never migrated" in cause for cause in causes)


def test_the_first_message_is_explained() -> None:
    text = f"{NOT_IN_RANGE}\nCaused by: Assigned key must not be null!"
    assert explain_exception(text).matched.startswith("Key group 193")
    text = f"Assigned key must not be null!\nCaused by: {NOT_IN_RANGE}"
    assert explain_exception(text).matched == "Assigned key must not be null"


def test_hostile_names_are_shown_as_text() -> None:
    text = (
        "Failed to rollback to checkpoint/savepoint s3://a/\x1b[2J. Cannot map checkpoint/"
        f"savepoint state for operator {'x' * 90} to the new program"
    )
    assert r"s3://a/\x1b[2J" in str(explain_exception(text))
    long = text.replace("a/\x1b[2J", "p" * 900)
    assert f"{'p' * 100}" in str(explain_exception(long))
    assert "p" * 300 not in str(explain_exception(long))
    whole = text.replace("s3://a/\x1b[2J", "p" * 200)
    assert "p" * 200 in str(explain_exception(whole))
    cut = str(explain_exception(whole.replace("p" * 200, "p" * 201)))
    assert "p" * 197 + "..." in cut
    assert "p" * 198 not in cut


def test_what_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"text must have a message .* got 'hello': known"):
        explain_exception("hello")
    with pytest.raises(InvalidValueError, match=r"text must name key groups, got 'Key group 1 "):
        explain_exception("Key group 1 is not in KeyGroupRange{startKeyGroup=5, endKeyGroup=4}")
    with pytest.raises(InvalidTypeError, match="text must be a str"):
        explain_exception(b"Key group")  # type: ignore[arg-type]
    with pytest.raises(ParallelismError, match=r"parallelism must be from 1 to 128 \(max"):
        explain_exception(NOT_IN_RANGE, 128, 129)
    with pytest.raises(
        ParallelismError,
        match=r"from 1 to 32768 \(max_parallelism\), got 40000",
    ):
        explain_exception(NOT_IN_RANGE, None, 40_000)


@pytest.mark.parametrize("groups", [1, 2, 3, 7, 24, 60])
def test_ranges_and_subtasks_are_inverse(groups: int) -> None:
    """All subtasks of all parallelisms, against every range of key groups."""
    expected: dict[KeyGroupRange, dict[int, int]] = {}
    for parallelism in range(1, groups + 1):
        for index in range(parallelism):
            own = compute_key_group_range_for_operator_index(groups, parallelism, index)
            expected.setdefault(own, {})[parallelism] = index
    for start in range(groups):
        for end in range(start, groups):
            groups_of = KeyGroupRange(start, end)
            known = compute_operator_indexes_for_key_group_range(groups, groups_of)
            assert known == expected.get(groups_of, {})
            assert list(known) == sorted(known)


def test_ranges_that_no_job_has() -> None:
    with pytest.raises(InvalidValueError, match=r"must have key groups, got KeyGroupRange\.EMPTY"):
        compute_operator_indexes_for_key_group_range(128, KeyGroupRange.EMPTY)
    with pytest.raises(InvalidValueError, match="end of key_group_range must be from 3 to 127"):
        compute_operator_indexes_for_key_group_range(128, KeyGroupRange(3, 128))
    with pytest.raises(InvalidTypeError, match="key_group_range must be a KeyGroupRange"):
        compute_operator_indexes_for_key_group_range(128, (3, 5))  # type: ignore[arg-type]
    with pytest.raises(ParallelismError, match=r"^max_parallelism must be from 1 to 32768 "):
        compute_operator_indexes_for_key_group_range(0, KeyGroupRange(0, 0))
