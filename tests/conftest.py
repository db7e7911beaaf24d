"""The Spark session of the tests, and real Flink inside it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from support.flink.evolved_jobs import EvolvedJobs
from support.flink.flink_oracle import (
    FlinkOracle,
    flink_jar,
    flink_version,
    local_session,
    version_numbers,
)
from support.flink.flink_restores import FlinkRestores
from support.flink.flink_sql import FlinkSql, jdk_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The most cases of a test that a run of everything takes, where `--share` gives no other number.
SHARE = 4

FLIGHTS = Path(__file__).resolve().parents[1] / "examples" / "data" / "nycflights13.parquet"

# How long an example takes says more of the machine than of the code. A change is judged by the
# same examples as the one before; `--hypothesis-profile new` draws others each time, and more.
settings.register_profile("new", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Have the option of a run that names files and takes a share all the same."""
    text = "take at most so many cases, at least 2, of each test: README.md in this folder"
    parser.addoption("--share", type=int, metavar="CASES", help=text)


def pytest_configure() -> None:
    """Install the Flink that FLINK_VERSION names once, before there are several processes."""
    flink_jar()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have one of several processes take all that needs Spark, which is one JVM.

    Other tests go by their files. `--dist loadfile` has each process start Spark.
    """
    if config.getvalue("dist") != "load":
        return None
    scheduler = import_module("xdist.scheduler").LoadScopeScheduling(config, log)

    def scope_of(nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        needs_spark = path.startswith(("tests/spark/", "tests/flink/", "tests/test_docs.py"))
        return "spark" if needs_spark else path

    scheduler._split_scope = scope_of
    return scheduler


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have a run of everything, as the README's, take some cases of each test that is not long.

    What has more cases than that gives its first, its last and those that divide the rest evenly.
    Whoever names files, or chooses with `-k` or `-m`, gets all that is there. `--share` takes so
    many all the same, and each case of what is marked for its branches.
    """
    options = config.option
    # The last of addopts is the expression of `-m` that holds where nobody gives another.
    asked = options.keyword or options.markexpr != config.getini("addopts")[-1]
    if options.share is None and (asked or config.args != config.getini("testpaths")):
        return
    most = SHARE if options.share is None else options.share
    if most < 2:
        raise pytest.UsageError(f"--share must be 2 or more, got {most}")
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    branches = set()
    for item in items:
        if options.share is not None and item.get_closest_marker("branch"):
            branches.add(item)
        elif item.get_closest_marker("long") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    share = branches | {
        all_of[(len(all_of) - 1) * number // (most - 1)]
        for all_of in cases.values()
        for number in range(most)
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in share])
    items[:] = [item for item in items if item in share]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what the Flink at hand is too old for."""
    jar = flink_jar()
    for mark in item.iter_markers("flink_since"):
        first, why = mark.args
        if jar and version_numbers(flink_version(jar)) < version_numbers(first):
            pytest.skip(f"Flink {flink_version(jar)}: {why} needs {first}")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark in UTC; real Flink is on its class path where it is installed."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        pytest.skip("no Java for Spark to run in")
    session = local_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def flights_by() -> Callable[[str | list[str]], Counter[Any]]:
    """How many flights each key of a column has, or each tuple of several, without Spark."""
    parquet: Any = pytest.importorskip("pyarrow.parquet")

    def count(by: str | list[str]) -> Counter[Any]:
        table = parquet.read_table(FLIGHTS, columns=[by] if isinstance(by, str) else by)
        columns = [column.to_pylist() for column in table.columns]
        return Counter(columns[0] if isinstance(by, str) else zip(*columns))

    return count


def _ansi_modes() -> list[Any]:
    """Return both modes: that of this Spark as it is shipped, and as slow the other."""
    try:
        shipped = not version("pyspark").startswith("3.")
    except PackageNotFoundError:
        return []
    return [
        pytest.param(str(on).lower(), id=name, marks=[pytest.mark.slow] if on != shipped else [])
        for on, name in ((True, "ansi"), (False, "no-ansi"))
    ]


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Expressions interpreted: compiling a query takes far longer than a few rows of it."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


@pytest.fixture(params=_ansi_modes())
def ansi(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Spark with ANSI mode on, and off."""
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield
    spark.conf.unset("spark.sql.ansi.enabled")


@pytest.fixture
def collected(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each `collect()` of the test brought to the driver."""
    counts: list[int] = []
    frame = type(spark.range(1))
    collect = frame.collect

    def counting(df: Any) -> Any:
        rows = collect(df)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(frame, "collect", counting)
    return counts


@pytest.fixture(scope="session")
def flink(request: pytest.FixtureRequest) -> FlinkOracle:
    """Real Flink, to be asked about keys."""
    if flink_jar() is None:
        pytest.skip("apache-flink-libraries is not installed")
    if "KEYGROUPS_TEST_REMOTE" in os.environ:
        pytest.skip("Spark Connect does not reach into the JVM")
    return FlinkOracle(request.getfixturevalue("spark"))


@pytest.fixture(scope="session")
def flink_sql(tmp_path_factory: pytest.TempPathFactory) -> FlinkSql:
    """Real Flink SQL, in JVMs of its own."""
    jar, jdk = flink_jar(), jdk_folder()
    if jar is None:
        pytest.skip("apache-flink-libraries is not installed")
    if jdk is None:
        pytest.skip("no JDK, whose compiler Flink SQL's programs need")
    return FlinkSql(jdk, jar.parent, tmp_path_factory.mktemp("flink_sql"))


@pytest.fixture(scope="session")
def restores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkRestores]:
    """A cluster of real Flink that restores savepoints."""
    jar, jdk = flink_jar(), jdk_folder()
    if jar is None:
        pytest.skip("apache-flink-libraries is not installed")
    if jdk is None:
        pytest.skip("no JDK, whose compiler the restored jobs need")
    cluster = FlinkRestores(jdk, jar, tmp_path_factory.mktemp("restores"))
    yield cluster
    cluster.end()


@pytest.fixture(scope="session")
def evolved_jobs(tmp_path_factory: pytest.TempPathFactory) -> EvolvedJobs:
    """Jobs of real Flink whose classes are others by now."""
    jar, jdk = flink_jar(), jdk_folder()
    if jar is None or jdk is None:
        pytest.skip("needs Flink's jars and a JDK")
    return EvolvedJobs(jdk, jar, tmp_path_factory.mktemp("evolved_jobs"))


@pytest.fixture
def handlers() -> Iterator[dict[str, Any]]:
    """Set the signals that end a command to what a shell's foreground has, and undo that.

    Workers of xdist ignore SIGINT, as does what a shell runs in the background, and what they
    start. Returns the handlers by the names of the signals.
    """
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("the main thread alone handles signals")
    usual: dict[str, Any] = dict.fromkeys(("SIGTERM", "SIGHUP"), signal.SIG_DFL)
    usual["SIGINT"] = signal.default_int_handler
    before = {
        name: signal.signal(getattr(signal, name), handler) for name, handler in usual.items()
    }
    yield usual
    for name, handler in before.items():
        signal.signal(getattr(signal, name), handler)
