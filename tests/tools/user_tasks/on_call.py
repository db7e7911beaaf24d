"""Tasks of people who are on call for Flink."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from datetime import datetime, timezone
from typing import Any

from user_tasks.asking import (
    CHECKPOINT,
    FLINK_1,
    NATIVE,
    NEW,
    POJOS,
    SAVEPOINT,
    HalfSolvedError,
    Output,
    Step,
    tasks,
    work,
)
from user_tasks.truth import entries, java_hash, key_group, murmur_hash, seen_in_sql

TASKS, task = tasks()
TOKEN = "s3cret"
EXCEPTION = "Key group 91 is not in KeyGroupRange{startKeyGroup=43, endKeyGroup=85}."


@task(
    f'"{EXCEPTION[:19]} ...": what now?',
    f'$ keygroups explain "{EXCEPTION}" -m 128',
    "$ keygroups trace user-25278 -m 128 -p 3",
)
def key_group_is_not_in(explained: Output, traced: Output) -> None:
    assert "subtask 1 of 3; key group 91 belongs to subtask 2" in explained.out
    assert "keygroups trace KEY -m 128" in explained.out
    (entry,) = entries(SAVEPOINT, "by-string", "count", "user-25278")
    assert entry["key_group"] == 91
    assert "key group    91 = " in traced.out
    assert f"subtask      {entry['subtask']} = " in traced.out


@task(
    "One TaskManager is at 100 %: which, and why?",
    f"$ KEYGROUPS_FLINK_TOKEN={TOKEN} keygroups job URL --json",
    f"$ KEYGROUPS_FLINK_TOKEN={TOKEN} keygroups job URL",
)
def hot_machine(data: Output, printed: Output) -> None:
    vertices = json.loads(data.out)["vertices"]
    hot = [
        vertex["subtasks"][subtask]["host"]
        for vertex in vertices
        if vertex["skew"]
        for subtask in vertex["skew"]["hot_subtasks"]
    ]
    assert hot
    assert "hot" in printed.out
    if not all(host in printed.out for host in hot):
        raise HalfSolvedError("the hot subtask, not its machine")


@task(
    "A savepoint is large: which operator, state, key?",
    "$ keygroups savepoint NATIVE --full",
)
def what_is_large(printed: Output) -> None:
    for state in ("count", "byCity"):
        count = sum(1 for _ in entries(NATIVE, "by-string", state))
        assert re.search(rf"^  by-string +{state} +\w+ +{count} ", printed.out, re.MULTILINE)
    assert "The heaviest keys of each state" in printed.out


@task(
    "From 96 to 128 subtasks",
    Step("$ keygroups plan 96 96 128", fails=True),
    "$ keygroups savepoint SAVEPOINT --set-max-parallelism 4096 --output WORK/more",
    """
from keygroups.savepoint import read_savepoint

print(read_savepoint("WORK/more").check_restore("by-string", 128, 4096))
for entry in read_savepoint("WORK/more").operator("by-string").entries(["count"]):
    print(entry.key_group, entry.value, entry.key)
""",
)
def more_subtasks(refused: Output, _: Output, restored: Output) -> None:
    assert "--set-max-parallelism N --output NEW" in refused.err
    result, *lines = restored.out.splitlines()
    assert result == "4096"
    assert sorted(lines) == sorted(
        f"{key_group(entry['key'], 4096)} {entry['value']['long']} {entry['key']}"
        for entry in entries(SAVEPOINT, "by-string", "count")
    )


@task(
    "Which max parallelism for ten times the load?",
    "$ keygroups suggest 6 8 12 --growth 10 --json",
)
def ten_times(suggested: Output) -> None:
    best = json.loads(suggested.out)["suggestions"][0]["max_parallelism"]
    assert best >= 120
    assert not any(best % parallelism for parallelism in (6, 8, 12))


@task(
    "A checkpoint was moved to another store",
    Step(
        "$ keygroups savepoint WORK/store/ckpt/chk-7 --operator by-string --key user-18276",
        fails=True,
    ),
    "$ keygroups savepoint WORK/store/ckpt/chk-7 --relocate WORK/store/ckpt/chk-7 "
    "--moved MOVED_FROM=WORK/store/moved",
    "$ keygroups savepoint WORK/store/ckpt/chk-7 --operator by-string --key user-18276 --json "
    "--allow WORK/store/moved",
)
def moved_checkpoint(refused: Output, _: Output, shown: Output) -> None:
    assert len(refused.err.splitlines()) == 1
    assert "--moved" in refused.err
    (entry,) = entries(CHECKPOINT, "by-string", "count", "user-18276")
    assert json.loads(shown.out)["states"]["count"] == entry["value"]["long"]


def copy_checkpoint() -> str:
    """Copy a checkpoint and the folder of its merged files; return where its job's folder was."""
    ((old, merged),) = CHECKPOINT.moved.items()
    folder, _, name = old.partition("/taskowned/")
    shutil.copytree(CHECKPOINT.path, work() / "store/ckpt/chk-7")
    shutil.copytree(merged, work() / "store/moved/taskowned" / name)
    return folder


@task(
    "State grows every day: where?",
    "$ keygroups savepoint SAVEPOINT --operator by-string --delete-keys KEYS --output WORK/monday",
    "$ keygroups diff WORK/monday SAVEPOINT NEW --json",
    "$ keygroups diff WORK/monday SAVEPOINT NEW",
)
def what_grows(_: Output, data: Output, printed: Output) -> None:
    points = [(SAVEPOINT, ["user-89019"]), (SAVEPOINT, []), (NEW, [])]
    for state in ("count", "byCity"):
        true = [
            sum(entry["key"] not in without for entry in entries(point, "by-string", state))
            for point, without in points
        ]
        grown = [row["entries"] for row in json.loads(data.out)["states"] if row["state"] == state]
        assert true in grown
        assert state in printed.out


@task(
    "Erase a user's keys",
    """$ echo user-89019 > WORK/keys.txt
$ keygroups savepoint examples/data/savepoint --operator by-string \\
$     --delete-keys WORK/keys.txt --output WORK/erased
$ keygroups savepoint WORK/erased --operator by-string --key user-89019""",
    "$ keygroups diff examples/data/savepoint WORK/erased --json",
)
def erase(report: Output, diff: Output) -> None:
    assert report.out.endswith("key 'user-89019' of by-string, key group 97, subtask 2: nothing\n")
    assert b"user-89019" in (SAVEPOINT.path / "_metadata").read_bytes()
    assert b"user-89019" not in (work() / "erased/_metadata").read_bytes()  # all is inline
    differences: Counter[tuple[str, str]] = Counter()
    for operator in json.loads(diff.out)["operators"]:
        for state in operator["states"]:
            for difference in ("changed", "touched", "only_here", "only_there"):
                differences[difference, state["state"]] += state[difference]
    erased = entries(SAVEPOINT, "by-string", key="user-89019")
    assert +differences == Counter(("only_here", entry["state"]) for entry in erased)


@task(
    "A uid was forgotten, and state does not come back",
    """
from keygroups.savepoint import SavepointWriter, ValueStateDescriptor
from keygroups.types import LONG, STRING
for path, uids in (("old", ["a", "b"]), ("new", ["a", "by-user"])):
    with SavepointWriter(f"WORK/uid-{path}") as writer:
        for uid in uids:
            states = [ValueStateDescriptor(f"count-{uid[0]}", LONG)]
            operator = writer.add_operator(uid, STRING, states, 128, 3, sort=True)
            operator.write(f"count-{uid[0]}", "ann", 7)
""",
    Step(
        "$ printf 'a\\nb\\nby-user\\n' > WORK/job-uids.txt\n"
        "$ keygroups restore WORK/uid-old WORK/uid-new --uids WORK/job-uids.txt",
        fails=True,
    ),
    "$ keygroups savepoint WORK/uid-old --rename-operator b=by-user --output WORK/uid-mended",
    "$ keygroups restore WORK/uid-mended WORK/uid-new",
)
def forgotten(_: Output, refused: Output, renamed: Output, restored: Output) -> None:
    assert "change_operator_identifier('b', ...) gives it the uid 'by-user'" in refused.out
    assert "by-user" in renamed.out
    assert "it restores" in restored.out


@task(
    "Which timers fire tonight?",
    "$ keygroups savepoint SAVEPOINT --full --operator by-string",
    "$ keygroups savepoint SAVEPOINT --operator by-string --key user-89019",
)
def timers(full: Output, of_key: Output) -> None:
    state = "_timer_state/event_user-timers"
    times = [entry["timestamp"] for entry in entries(SAVEPOINT, "by-string", state)]
    dates = [f"{datetime.fromtimestamp(at / 1000, timezone.utc):%Y-%m-%d %H:%M}" for at in times]
    assert min(dates) in full.out
    own = [*entries(SAVEPOINT, "by-string", state, "user-89019")]
    if not all(
        f"{datetime.fromtimestamp(e['timestamp'] / 1000, timezone.utc):%Y-%m-%d %H:%M:%S}"
        in of_key.out
        for e in own
    ):
        raise HalfSolvedError("the timers of a key are epoch milliseconds")


@task(
    "Where does a Kafka source stand, and how far behind?",
    """
from keygroups.savepoint import KafkaOffsets, SavepointWriter
with SavepointWriter("WORK/source") as writer:
    offsets = KafkaOffsets({("orders", 0): 100, ("orders", 1): 250})
    writer.add_source("orders", offsets, 128, parallelism=2)
""",
    "$ printf 'orders:0:110\\norders:1:400\\n' > WORK/ends.txt",
    "$ keygroups savepoint WORK/source --ends WORK/ends.txt",
)
def offsets(_: Output, __: Output, printed: Output) -> None:
    for partition, offset in ((0, 100), (1, 250)):
        assert re.search(rf"\borders\b.*\b{partition}\b.*\b{offset}\b", printed.out)
    assert f"{110 - 100 + 400 - 250} records behind" in printed.out


@task(
    "From a running job to the state of its newest savepoint",
    Step("$ keygroups job URL --savepoints", fails=True),
    f"$ KEYGROUPS_FLINK_TOKEN={TOKEN} keygroups job URL --savepoints",
    f"""
from keygroups.job import read_job
from keygroups.savepoint import read_savepoint

job = read_job("URL", headers={{"Authorization": "Bearer {TOKEN}"}})
newest = next(point for point in job.savepoints() if point.path and not point.is_discarded)
print(read_savepoint(newest.path).operator("by-string").get("user-89019", "count"))
""",
)
def from_a_job(refused: Output, listed: Output, state: Output) -> None:
    assert len(refused.err.splitlines()) == 1
    assert "401" in refused.err
    assert "KEYGROUPS_FLINK_TOKEN" in refused.err
    assert f"file:{SAVEPOINT.path}" in listed.out
    assert TOKEN not in listed.out + state.out + listed.err + state.err
    (entry,) = entries(SAVEPOINT, "by-string", "count", "user-89019")
    assert state.out.split() == [str(entry["value"]["long"])]


@task(
    "Values as JSON, for jq",
    "$ keygroups savepoint POJOS --operator pojo --state pojo --export - "
    "| jq -r '\"\\(.key.id) \\(.key.name) \\(.value.id)\"'",
)
def for_jq(printed: Output) -> None:
    true = [
        f"{entry['key']['fields']['id']['int']} {entry['key']['fields']['name']} "
        f"{entry['value']['fields']['id']['int']}"
        for entry in POJOS.lines(POJOS.entries)
        if entry["state"] == "pojo"
    ]
    assert sorted(printed.out.splitlines()) == sorted(true)


@task(
    "What is the value of a key?",
    "$ keygroups savepoint NATIVE --operator by-string --state count --key user-5872",
    """
from keygroups.savepoint import read_savepoint

print(read_savepoint("NATIVE").operator("by-string").get("user-5872"))
""",
)
def value_of_a_key(shown: Output, everything: Output) -> None:
    of_key = list(entries(NATIVE, "by-string", key="user-5872"))
    (count,) = (entry["value"]["long"] for entry in of_key if entry["state"] == "count")
    assert re.search(rf"^count  {count}$", shown.out, re.MULTILINE)
    values: dict[str, Any] = eval(everything.out, {"TtlValue": dict})
    assert values.keys() == {entry["state"] for entry in of_key}
    assert values["count"] == count
    of_map = entries(NATIVE, "by-string", "byCity", "user-5872")
    assert values["byCity"] == {entry["user_key"]: entry["value"]["long"] for entry in of_map}


@task(
    "What is in my savepoint of Flink 1?",
    """
from keygroups.savepoint import read_savepoint

uids = ["by-string", "by-long", "by-int", "by-tuple", "session", "tumbling"]
savepoint = read_savepoint("FLINK_1", uids=uids)
print(savepoint)
for uid in uids:
    print(uid, sorted(state.name for state in savepoint.operator(uid).states))
""",
    """$ printf 'by-string\\nsession\\n' > WORK/uids.txt
$ keygroups savepoint FLINK_1 --uids WORK/uids.txt --operator session""",
)
def what_is_in_it(listed: Output, shown: Output) -> None:
    for uid in ("by-string", "by-long", "by-int", "by-tuple", "session", "tumbling"):
        assert re.search(rf"^{uid} +3  128 ", listed.out, re.MULTILINE)
        states = {line["state"] for line in entries(FLINK_1, uid)}
        (line,) = re.findall(rf"^{uid} \[(.*)\]$", listed.out, re.MULTILINE)
        assert states <= set(line.strip("'").split("', '"))
    assert "by-string  " in shown.out
    assert "window-contents: AGGREGATING <STRING, TIME_WINDOW, TUPLE(LONG, INT)>" in shown.out


@task(
    "What has changed between two savepoints?",
    "$ keygroups diff examples/data/savepoint NEW --operator by-string",
)
def what_has_changed(diff: Output) -> None:
    for state in ("count", "byCity"):
        old, new = (
            {
                (entry["key"], entry.get("user_key")): entry["value"]
                for entry in entries(savepoint, "by-string", state)
            }
            for savepoint in (SAVEPOINT, NEW)
        )
        both = old.keys() & new.keys()
        equal = sum(old[key] == new[key] for key in both)
        counts = {
            "equal": equal,
            "changed": len(both) - equal,
            "only here": len(old) - len(both),
            "only there": len(new) - len(both),
        }
        line = ", ".join(f"{count} {difference}" for difference, count in counts.items() if count)
        assert re.search(rf"^  {state}: .*\n    {line}$", diff.out, re.MULTILINE)


@task(
    "Which API wrote my job, and which subtask has a key?",
    """
import json
from keygroups.routing_inference import infer_routing

seen = [(tuple(key), subtask) for key, subtask in json.load(open("WORK/seen.json"))]
print(infer_routing(seen, 23))
""",
    Step("""$ keygroups trace "('user-4360', 0)" -m 128 -p 23""", fails=True),
    """$ keygroups trace "('user-4360', 0)" -m 128 -p 23 --type 'SQL_ROW("STRING", "INT")'""",
)
def which_api(inferred: Output, refused: Output, trace: Output) -> None:
    assert "max parallelism 128, SQL_ROW('STRING', 'INT')" in inferred.out
    assert "TUPLE" not in inferred.out
    assert all(name in refused.err for name in ("'TUPLE(STRING, INT)'", "'SQL_ROW("))
    (true,) = (seen for key, seen in seen_in_sql() if key == ["user-4360", 0])
    as_tuple = murmur_hash(31 * java_hash("user-4360")) % 128 * 23 // 128
    assert (true, as_tuple) == (13, 17)
    assert f"subtask      {true} = " in trace.out
