"""Every snapshot of a serializer in Flink's jars: is it known here?

And what serializers write here: does Flink read it, and write the very same again?
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from support.bytes.older_snapshots import OLDER_SNAPSHOTS
from support.bytes.serializer_cases import Case, cases
from support.bytes.varied_values import varied
from support.flink.flink_arrays import compile_program
from support.flink.flink_oracle import flink_jar, flink_version
from support.flink.flink_sql import OPENED_PACKAGES, jdk_folder
from support.flink.java_classes import implementations
from support.inside.serializers import REGISTRY

from keygroups.errors import KeyGroupsError
from keygroups.savepoint import Serializer

SNAPSHOT = "org.apache.flink.api.common.typeutils.TypeSerializerSnapshot"
NOT_KNOWN = {
    # Flink 1.x has it, and its serialize() throws: only savepoints of before 1.8 have it
    "org.apache.flink.cep.nfa.sharedbuffer."
    "SharedBufferNode$SharedBufferNodeSerializer$SharedBufferNodeSerializerSnapshot",
}


@pytest.mark.flink
def test_every_snapshot_is_known(record_property: Callable[[str, object], None]) -> None:
    dist = flink_jar()
    if dist is None:
        pytest.skip("needs Flink's jars")
    jars = [*dist.parent.glob("flink-*.jar"), *dist.parents[1].glob("opt/flink-python*.jar")]
    snapshots = implementations(jars, "org.apache.flink.", SNAPSHOT)
    record_property("snapshots", f"{len(snapshots & set(REGISTRY))} of {len(snapshots)} known")
    assert len(snapshots) > 80
    assert snapshots - set(REGISTRY) <= NOT_KNOWN


WRITTEN_OTHERWISE = {
    "external.DATE": "a day far away, which the class outside of SQL does not hold",
    "external.TIMESTAMP": "likewise",
    "external.internal": "Flink reads a Row, and writes a RowData",
    "external.RAW": "bytes of which only the job can tell whether they are a value",
    "java.String": "a stream of Java's own has room to spare, which is not read",
    "sortedmap.rank": "its comparator is code that is compiled with more jars than these",
    "set.3": "arrays in a Row are equal by what they hold, others are not",
}


def values_of(case: Case, count: int, rng: Random) -> list[bytes]:
    """Return the bytes written for values like those of a case, where none is refused."""
    data = b"\0\0\0\2" + case.snapshot
    serializer = Serializer.from_snapshot(data, kryo_version=case.kryo_version)
    passed, written = [], []
    for value in case.values:
        try:
            passed.append(serializer.decode(value.data))
        except KeyGroupsError:
            continue
    for _ in range(2 * count if passed else 0):
        try:
            written.append(serializer.encode(varied(rng.choice(passed), rng)))
        except KeyGroupsError:
            continue
    return written[:count]


@pytest.mark.flink
@pytest.mark.parametrize("count", [20, pytest.param(400, marks=pytest.mark.slow)])
def test_flink_writes_the_same_again(
    count: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """But for maps and sets, whose order is that of Java's hashes."""
    jar, jdk = flink_jar(), jdk_folder()
    if jar is None or jdk is None:
        pytest.skip("needs Flink's jars and a JDK")
    rng, version = Random(count), flink_version(jar)
    chosen = [case for case in cases() if version in case.flinks]
    passed = [
        (case, written)
        for case in chosen
        if case.name not in WRITTEN_OTHERWISE and (written := values_of(case, count, rng))
    ]
    if not passed:
        pytest.skip(f"there are no cases of Flink {version}")
    class_path = compile_program(jdk, jar, tmp_path, "RewrittenValues")
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED_PACKAGES]
    command = [str(jdk / "java"), *opened, "-cp", class_path, "RewrittenValues"]
    lines = ("\t".join([case.snapshot.hex(), *(d.hex() for d in data)]) for case, data in passed)
    text = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=True
    )
    counts: Counter[str] = Counter()
    for (case, written), line in zip(passed, text.stdout.splitlines(), strict=True):
        if line.startswith("no serializer: "):
            counts["values of classes that are not there"] += len(written)
            continue
        for data, again in zip(written, line.split("\t"), strict=True):
            assert not again.startswith("error: "), (case, data.hex(), again)
            assert sorted(bytes.fromhex(again)) == sorted(data), (case, data.hex(), again)
            counts["equal" if again == data.hex() else "in another order"] += 1
    record_property("values", dict(counts))
    print(dict(counts))
    assert counts["equal"] > 250 * count


@pytest.mark.flink
def test_flink_reads_older_snapshots(tmp_path: Path) -> None:
    """And writes the same value again; which class is there depends on the version of Flink."""
    jar, jdk = flink_jar(), jdk_folder()
    if jar is None or jdk is None:
        pytest.skip("needs Flink's jars and a JDK")
    class_path = compile_program(jdk, jar, tmp_path, "RewrittenValues")
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED_PACKAGES]
    command = [str(jdk / "java"), *opened, "-cp", class_path, "RewrittenValues"]
    lines = (f"{older.data.hex()}\t{older.value_bytes.hex()}" for older in OLDER_SNAPSHOTS)
    text = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=True
    )
    answers = text.stdout.splitlines()
    present = [not answer.startswith("no serializer: ") for answer in answers]
    assert sum(present) > len(OLDER_SNAPSHOTS) // 2
    for older, answer, is_there in zip(OLDER_SNAPSHOTS, answers, present, strict=True):
        assert not is_there or answer == older.value_bytes.hex(), older
