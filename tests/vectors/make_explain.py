"""Make the EXPLAIN texts again: `python tests/vectors/make_explain.py [folder]`.

Needs a JDK and the package apache-flink-libraries, or FLINK_VERSION for another version of it.
Texts and compiled plans are Flink's; the same Flink writes the same `explain-<version>.jsonl.gz`.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from support.flink.explain_jobs import explain_task, hashing_exchanges
from support.flink.flink_oracle import flink_jar, flink_version
from support.flink.flink_sql import FlinkSql, jdk_folder

# A few of the jobs that the live tests explain; all of them would be megabytes.
PLAIN = [
    "group without a key",
    "group of a string",
    "distinct count, split",
    "over without a watermark",
    "top, no sink",
    "last, no sink",
    "limit, no sink",
    "join of two types",
    "join of groups",
    "join within an interval",
    "group of changes",
    "tumble",
    "old tumble",
    "pattern",
    "union of three, no sink",
    "values",
    "strings",
    "ranges",
    "line break",
    "whole line",
    "forged heading",
    "brackets",
    "quote",
    "comma",
    "letters",
    "attributes",
    "two sinks of one",
    "no update before",
    "multi join",
]
WITH_DETAILS = ["group", "shuffled lookup"]


def texts(flink: FlinkSql) -> Iterator[dict[str, object]]:
    """Yield the lines of a file."""
    for batch in (False, True):
        task = explain_task(batch)
        wanted = [job for job in task["jobs"] if job["name"] in (*PLAIN, *WITH_DETAILS)]
        for job in wanted:
            if job["name"] in PLAIN:
                job["details"] = job["details"][:1]
        for job, output in zip(wanted, flink.explain_texts({**task, "jobs": wanted})):
            for details, text in zip(job["details"], output.get("explain", ())):
                if "error" not in output:
                    yield {
                        "job": job["name"],
                        "details": details,
                        "batch": batch,
                        "exchanges": None if batch else hashing_exchanges(output["plan"]),
                        "text": text,
                    }


def main() -> None:
    """Write the file."""
    jar, jdk = flink_jar(), jdk_folder()
    target = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent
    if jar is None or jdk is None:
        raise SystemExit("needs a JDK and apache-flink-libraries")
    version = flink_version(jar)
    with TemporaryDirectory() as folder:
        lines = [{"flink": version}, *texts(FlinkSql(jdk, jar.parent, Path(folder)))]
    written = "".join(f"{json.dumps(line)}\n" for line in lines)
    file = target / f"explain-{version}.jsonl.gz"
    file.write_bytes(gzip.compress(written.encode("ascii"), mtime=0))


if __name__ == "__main__":
    main()
