"""The job that examples/bootstrap_job.py prints, compiled and started from what it writes."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.flink.flink_oracle import flink_jar
from support.flink.flink_sql import OPENED_PACKAGES, jdk_folder

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.20", "the API of its job"),
]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAM = """
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public class Bootstrapped {
    public static class Flight {
        public String carrier, tailnum;
    }

    public static class CountFlights extends KeyedProcessFunction<String, Flight, String> {
        private ValueState<Long> flights;
        private MapState<String, Long> byTailnum;

        @Override
        public void open(OpenContext context) {
            %s
        }

        @Override
        public void processElement(Flight flight, Context context, Collector<String> out)
                throws Exception {
            flights.update(flights.value() + 1);
            Long before = byTailnum.get(flight.tailnum);
            byTailnum.put(flight.tailnum, before == null ? 1 : before + 1);
            out.collect(
                    flight.carrier + " " + flights.value() + " " + flight.tailnum + " "
                            + byTailnum.get(flight.tailnum));
        }
    }

    public static void main(String[] args) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("execution.state-recovery.path", args[0]);
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        env.setParallelism(3);
        Flight[] seen = new Flight[args.length / 2];
        for (int i = 0; i < seen.length; i++) {
            seen[i] = new Flight();
            seen[i].carrier = args[2 * i + 1];
            seen[i].tailnum = args[2 * i + 2];
        }
        DataStream<Flight> flights = env.fromData(Flight.class, seen);
        %s
    }
}
"""

sys.path.insert(0, str(EXAMPLES))
bootstrap_job = importlib.import_module("bootstrap_job")
sys.path.pop(0)


def test_the_job_goes_on_with_the_counts(
    flights_by: Callable[[str | list[str]], Counter[Any]],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    jar, jdk = flink_jar(), jdk_folder()
    if jar is None or jdk is None:
        pytest.skip("apache-flink-libraries or a JDK is not here")
    request.getfixturevalue("spark")  # not if skipped
    savepoint = tmp_path / "savepoint"
    bootstrap_job.main(["--output", str(savepoint)])
    text = capsys.readouterr().out
    job, opens = re.findall(r":\n\n(.+?)(?:\n\n|\Z)", text, re.DOTALL)
    assert len(job.splitlines()) == 6
    source = tmp_path / "Bootstrapped.java"
    source.write_text(PROGRAM % (opens, job))
    class_path = os.pathsep.join([str(tmp_path), str(jar.parent / "*")])
    compiler = [str(jdk / "javac"), "-nowarn", "-cp", class_path, "-d", str(tmp_path)]
    done = subprocess.run([*compiler, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    flights, of_tailnum = flights_by("carrier"), flights_by(["carrier", "tailnum"])
    seen = [*sorted(pair for pair in of_tailnum if pair[1])[::40], ("UA", "new"), ("UA", "new")]
    options = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED_PACKAGES]
    done = subprocess.run(
        [str(jdk / "java"), *options, "-cp", class_path, "Bootstrapped", savepoint.as_uri()]
        + [word for pair in seen for word in pair],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = Counter(re.sub(r"^\d+> ", "", line) for line in done.stdout.splitlines())
    expected: Counter[str] = Counter()
    for carrier, tailnum in seen:
        flights[carrier] += 1
        of_tailnum[carrier, tailnum] += 1
        count = of_tailnum[carrier, tailnum]
        expected[f"{carrier} {flights[carrier]} {tailnum} {count}"] += 1
    assert found == expected
    print(f"{len(seen)} flights on top of {sum(flights.values()) - len(seen):,}")
