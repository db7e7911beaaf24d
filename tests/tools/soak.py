"""Very many keys through every path of keygroups, against real Flink: any difference is counted.

    .venv/bin/python tests/tools/soak.py --rows 100_000_000 --seed 1 --resume soak.jsonl

It needs the `flink` extra and a JDK. Keys are made in blocks, of which Flink's jars say the key
groups once, in Spark; with that are compared the scalar functions, `keygroups.arrays`, and both
paths of the columns. The rows are scalar keys; to them come one percent of compound ones. What
a block holds depends only on the seed, its kind, number and size. With `--resume` each block that
is done is noted down in a file of JSON lines, and not done again by the next run.

The exit status is 1 if any key group was not Flink's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

sys.path.append(str(Path(__file__).parents[1]))

from soak_kinds import COMPOUNDS, SCALARS, Kind
from support.flink.flink_oracle import ASSIGNMENT, local_session
from support.flink.flink_sql import JAVA_FOLDER
from support.inside.adapter import SETTING
from support.spark.java_udf import add_java_class

import keygroups
from keygroups import arrays
from keygroups.spark import with_routing

PATHS = ("scalar", "arrays", "fast", "portable")
BLOCK = 500_000
MAX_PARALLELISM = 32749  # a prime, so that each bit of a hash matters
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.datetime.java8API.enabled": "true",  # the classes of java.time in UDFs
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
}


class Block(NamedTuple):
    """Some keys of a kind."""

    kind: Kind
    number: int
    size: int


def make_blocks(kinds: Sequence[Kind], rows: int) -> Iterator[Block]:
    """Share rows out among kinds by their weight, and yield a block of each kind in turn."""
    whole = sum(kind.weight for kind in kinds)
    starts = [(kind, range(0, rows * kind.weight // whole, BLOCK)) for kind in kinds]
    for number in range(max(len(of_kind) for _, of_kind in starts)):
        for kind, of_kind in starts:
            if number < len(of_kind):
                yield Block(kind, number, min(BLOCK, of_kind.stop - of_kind[number]))


class Soak:
    """Compares blocks of keys, with a session of Spark that has Flink on its class path."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        self._spark, self._file, self._seed = spark, str(folder / "keys.parquet"), seed
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        jvm: Any = spark.sparkContext._jvm
        jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("UTC"))
        source = (JAVA_FOLDER / "SoakKeys.java").read_text(encoding="utf-8")
        cls = add_java_class(spark, ASSIGNMENT, "SoakKeys", source)
        spark.udf.registerJavaFunction("soak_keys", cls, "int")

    def compare(self, block: Block) -> dict[str, int]:
        """Return the number of keys in another key group than Flink's, by path; print some."""
        kind, number, size = block
        rng = np.random.default_rng([self._seed, number, size, *kind.name.encode()])
        keys = kind.make(rng, size)
        pq.write_table(pa.table({"id": np.arange(size), "key": kind.in_java(keys)}), self._file)
        query = self._query(kind)
        with ThreadPoolExecutor(1) as pool:  # two at a time: Spark in its JVM, and Python
            in_spark = pool.submit(query.toArrow)
            python = kind.in_python(keys)
            found: dict[str, Any] = {
                "scalar": [
                    keygroups.assign_to_key_group(key, MAX_PARALLELISM, kind.key_type)
                    for key in python
                ]
            }
            if kind.in_arrays:
                found["arrays"] = arrays.assign_to_key_group(keys, MAX_PARALLELISM, kind.key_type)
            answers = in_spark.result().sort_by("id").drop_columns("id").to_pydict()
        flink = np.array(answers.pop("flink"))
        assert len(flink) == size
        wrong = {}
        for path, groups in (found | answers).items():
            places = np.flatnonzero(np.array(groups) != flink)
            wrong[path] = len(places)
            for i in places[:3]:
                where = f"{groups[i]}, but Flink has it in {flink[i]}"
                print(f"{kind.name}, {path}: {python[i]!r} in {where}, of {MAX_PARALLELISM}")
        return wrong

    def _query(self, kind: Kind) -> DataFrame:
        df = self._spark.read.parquet(self._file)
        key_type = df.schema["key"].dataType
        names = (
            [f"key.{name}" for name in key_type.names]
            if isinstance(key_type, T.StructType)
            else "key"
        )
        what, most = F.lit(kind.java), F.lit(MAX_PARALLELISM)
        answers = df.withColumn("flink", F.call_udf("soak_keys", what, "key", most))
        for path in ("fast", "portable") if kind.in_columns else ():
            self._spark.conf.set(SETTING, path)
            routed = with_routing(answers, names, MAX_PARALLELISM, 1, kind.key_type)
            answers = routed.withColumnRenamed("key_group", path).drop("subtask")
        self._spark.conf.unset(SETTING)
        return answers.drop("key")


def read_done(file: Path | None) -> dict[str, dict[str, int]]:
    """Return the blocks noted down in a file, and how many keys of each are wrong by path."""
    done: dict[str, dict[str, int]] = {}
    if file and file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            done |= json.loads(line)
    return done


def main() -> None:
    """Compare all blocks that are not done yet, and print the counts of all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="scalar keys (default: 10^6)")
    parser.add_argument("--seed", type=int, default=1, help="other keys for another (default: 1)")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="where blocks done are noted")
    options = parser.parse_args()
    todo = [*make_blocks(SCALARS, options.rows), *make_blocks(COMPOUNDS, options.rows // 100)]
    done = read_done(options.resume)
    totals = {block.kind.name: {path: [0, 0] for path in PATHS} for block in todo}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(local_session(), Path(folder), options.seed)
        for number, block in enumerate(todo, 1):
            name = f"seed {options.seed}: {block.size} of {block.kind.name}, {block.number}"
            if name not in done:
                done[name] = soak.compare(block)
                if options.resume:
                    with options.resume.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({name: done[name]}) + "\n")
            for path, wrong in done[name].items():
                total = totals[block.kind.name][path]
                total[0], total[1] = total[0] + block.size, total[1] + wrong
            seconds = time.monotonic() - begin
            print(
                f"{seconds:6,.0f} s, {number} of {len(todo)} blocks: {name}, {done[name]}",
                flush=True,
            )
    print(f"| {' | '.join(['keys', *PATHS])} |\n|{'---|' * (1 + len(PATHS))}")
    for kind, by_path in totals.items():
        cells = (
            f"{keys:,}" + f", {wrong:,} wrong" * (wrong > 0) for keys, wrong in by_path.values()
        )
        print(f"| {kind} | {' | '.join(cells)} |")
    wrong = sum(wrong for by_path in totals.values() for _, wrong in by_path.values())
    print(
        f"{sum(block.size for block in todo):,} keys of seed {options.seed}: {wrong:,} mismatches"
    )
    sys.exit(min(wrong, 1))


if __name__ == "__main__":
    main()
