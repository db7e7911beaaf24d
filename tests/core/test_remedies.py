"""Every error message that names a remedy: the call fails, and what the message says works.

What is given in the end is what the JDK and Flink give: hash codes of the golden vectors, or such
as the JDK documents. `tests/spark/test_spark_remedies.py` is the adapter's half.
"""

from __future__ import annotations

import datetime as dt
import enum
import io
import json
import re
import socket
import ssl
import struct
import sys
import threading
import zoneinfo
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import find
from support.bytes import savepoint_bytes as sb
from support.bytes.changelog_bytes import changelog, inline, logged
from support.bytes.job_points import job_point
from support.bytes.real_savepoints import corpus, point
from support.golden import read
from support.inside.answers import parse_key_type
from support.inside.serializers import (
    AvroSerializer,
    Cursor,
    KryoSerializer,
    TtlSerializer,
    write_string,
)
from support.remedies import Remedy, imported, in_another_python, remedies_in_source, untried
from support.rest_server import JOB_ID, TLS, job_of, peer, server_context

from keygroups import (
    KeyGroupLoad,
    KeyGroupsError,
    RescalePlan,
    assign_key_to_parallel_operator,
    compute_key_group_for_key_hash,
    hash_code,
    infer_routing,
    keys_for_subtasks,
)
from keygroups.cli import main
from keygroups.explain import hash_exchanges
from keygroups.job import read_job
from keygroups.routing_inference import RoutingCandidate
from keygroups.savepoint import (
    KryoFields,
    Operator,
    Pojo,
    Savepoint,
    SavepointWriter,
    Serializer,
    ValueStateDescriptor,
    change_max_parallelism,
    convert_to_canonical,
    pyflink,
    read_savepoint,
    relocate,
)
from keygroups.state_keys import BYTES, CompositeKeySerializer, serializer_of
from keygroups.testing import keys
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    DOUBLE,
    FLOAT,
    HASHED,
    INT,
    LIST,
    LONG,
    OBJECTS_HASH,
    PYFLINK,
    SQL_DATE,
    SQL_ROW,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    KeyType,
)

ROOT = Path(__file__).parents[2]
ADVICE = [
    ("savepoint/_reports/report", "PyFlink: give the job's descriptors"),
    ("reports/_diagnosis", "key by a column of more values"),
    ("skew", "key by more values"),
    ("cli/_key_groups", "parallelism and subtask, or --key-groups, must be given"),
    ("flink_exceptions", "filter such records out before keyBy, or give them a key of their own"),
    (
        "flink_exceptions",
        "or set a max parallelism of at least {}; state that was written at {} has to be written "
        "anew for it: keygroups savepoint PATH --set-max-parallelism N",
    ),
    ("hashing", "which is the Java Tuple of Flink: pass key_type=SQL_ROW(...)"),
]
"""What reports advise; nothing failed."""


class Color(enum.Enum):
    RED = 1


class Text(str):
    """May be another class than String in Java."""


class Seven:
    """May be an Integer or a Long."""

    def __index__(self) -> int:
        return 7


Pair = namedtuple("Pair", "text number")


MONEY_SNAPSHOT = sb.i32(2) + sb.snapshot("a.Money", 1)


class Money(Serializer):
    name, versions = "MONEY", (1,)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        return cls()


@contextmanager
def without(*modules: str) -> Iterator[None]:
    """Do as if some modules were not installed, whoever has loaded parts of them."""
    hidden = [one for one in sys.modules if one.partition(".")[0] in modules]
    with patch.dict(sys.modules, dict.fromkeys([*modules, *hidden])):
        yield


def lacking(*modules: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Make a call run without some modules."""

    def decorate(call: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            with without(*modules):
                return call()

        return run

    return decorate


def list_by_kryo(declared: str) -> Any:
    """Write an object with a list in its field, and return it as it is read."""
    described = [("a.B", KryoFields(f=declared))]
    serializer = KryoSerializer("a.B", 5, ((), (), ()), described)
    return serializer.decode(serializer.encode(Pojo("a.B", {"f": ["x"]})))


def command(*arguments: str) -> Any:
    """Run the command, and return the JSON that it prints or raise what it says."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([*arguments, "--json"])
    if status:
        raise KeyGroupsError(json.loads(err.getvalue())["error"])
    return json.loads(out.getvalue())


def trace(key: str, *key_type: str) -> int:
    code: int = command("trace", key, "-m", "128", "-p", "3", *key_type)["hash_code"]
    return code


def reached(key_type: KeyType, template: tuple[object, ...] | None = None) -> list[int]:
    """Return the subtask of the key for each of three subtasks."""
    found = keys_for_subtasks(128, 3, key_type, template=template)
    return [assign_key_to_parallel_operator(key, 128, 3, key_type) for key in found]


# --- time zone data -----------------------------------------------------------------------


@contextmanager
def zone_data(*zones: tuple[str, str]) -> Iterator[None]:
    """Have no other data of the system than those of some zones, each under a name."""
    before = zoneinfo.TZPATH
    with TemporaryDirectory() as folder:
        for name, source in zones:
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(files("tzdata").joinpath("zoneinfo", source).read_bytes())
        zoneinfo.reset_tzpath(to=[folder])
        zoneinfo.ZoneInfo.clear_cache()
        try:
            yield
        finally:
            zoneinfo.reset_tzpath(to=before)
            zoneinfo.ZoneInfo.clear_cache()


def in_berlin() -> int:
    return hash_code(dt.date(2024, 1, 1), SQL_DATE("Europe/Berlin"))


IN_BERLIN = -1038416884
"""java.util.Date.hashCode of 1704063600000 ms, midnight in Berlin: the xor of both halves."""


def with_old_data() -> None:
    with zone_data(("Asia/Almaty", "Asia/Omsk")):  # Almaty was where Omsk is until 2024a
        in_berlin()


@lacking("tzdata")
def without_data() -> None:
    with zone_data():
        in_berlin()


def with_the_package() -> int:
    with zone_data():
        return in_berlin()


# --- Flink's own answers ------------------------------------------------------------------


def lookup_plan(*details: str) -> str:
    """Return the plan of a shuffled lookup join, which a batch job may have too."""
    _, plans = read("explain-2.3.0")
    wanted = {"job": "shuffled lookup", "details": list(details), "batch": False}
    (text,) = (one["text"] for one in plans if wanted.items() <= one.items())
    return str(text)


JOBS = [{"jid": digit * 32, "name": f"job {digit}", "state": "RUNNING"} for digit in "12"]
NO_VERTICES = {"vertices": [], "plan": {"nodes": []}}
ANSWERS = {
    "/jobs/overview": {"jobs": JOBS},
    f"/jobs/{'2' * 32}": {"name": "job 2", "state": "RUNNING", **NO_VERTICES},
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.removeprefix("/old")
        self.send_response(200 if path == self.path else 302)
        self.send_header("Location", path)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWERS[path]).encode())

    def log_message(self, *_: object) -> None:
        pass


def job_of_two(job_id: str | None = None, path: str = "") -> str:
    """Read a job from a cluster that runs two, and that redirects from /old."""
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            return read_job(f"http://127.0.0.1:{server.server_port}{path}", job_id).name
        finally:
            server.shutdown()
            thread.join()


def guarded_job(wants: str, **sign_in: Any) -> str:
    """Read a job of a cluster that wants a token, or a client that knows who signs ("ca").

    One that wants a "certificate" of the client is such a cluster too.
    """
    requests: list[str] = []

    def talk(connection: socket.socket, path: str) -> None:
        if wants == "token" and "Authorization: Bearer token" not in requests[-1]:
            connection.sendall(b"HTTP/1.1 401 No\r\n\r\n")
        else:
            job_of(0)(connection, path)

    context = None if wants == "token" else server_context()
    if context is not None and wants == "certificate":
        context.load_verify_locations(TLS / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    with peer(talk, context, requests) as url:
        return read_job(url.replace("127.0.0.1", "localhost"), JOB_ID, **sign_in).name


TOKEN = {"Authorization": "Bearer token"}
CA_FILE = {"ca_file": TLS / "ca.pem"}


# --- savepoints ---------------------------------------------------------------------------


def entries(name: str) -> int:
    """Return the number of entries of keyed state that a recorded point has."""
    return sum(1 for operator in point(name).read().operators for _ in operator.entries())


def put(name: str) -> int:
    """Return the number of them that Flink's own classes read there."""
    return sum(1 for _ in point(name).truth("entries"))


def converted(name: str) -> int:
    """Write a recorded point anew, and return its entries."""
    with TemporaryDirectory() as folder:
        convert_to_canonical(point(name).read(), f"{folder}/new")
        found = read_savepoint(f"{folder}/new")
        return sum(1 for operator in found.operators for _ in operator.entries())


def last_access(time: int, allow_any: bool) -> int | None:
    """Write a value with a time to live, and return the time that is read."""
    states = [ValueStateDescriptor("seen", LONG, has_ttl=True)]
    with TemporaryDirectory() as folder:
        with SavepointWriter(f"{folder}/new") as writer:
            operator = writer.add_operator(
                *("uid", STRING, states, 128, 1), allow_any_last_access=allow_any
            )
            operator.write("seen", "a", 1, last_access=time)
        (entry,) = read_savepoint(f"{folder}/new").operators[0].entries()
        return entry.last_access


def written_after(
    template: Savepoint | None, uid: str, states: list[ValueStateDescriptor] | None = None
) -> list[str]:
    """Add an operator after a template, and return the types of its values."""
    with TemporaryDirectory() as folder:
        writer = SavepointWriter(f"{folder}/new", template=template)
        groups = 128 if template is None else None
        operator = writer.add_operator(uid, STRING if states else None, states, groups, groups)
        values = [state.value_serializer for state in operator.states]
        return [str(value) for value in values if value is not None]


def rewritten(name: str, max_parallelism: int) -> None:
    with TemporaryDirectory() as folder:
        change_max_parallelism(point(name).read(), max_parallelism, f"{folder}/new")


def avro_of(name: str) -> AvroSerializer:
    fields = '[{"name":"n","type":"int"}]'
    return AvroSerializer(name, f'{{"type":"record","name":"{name}","fields":{fields}}}')


def kryo_values(canonical: bool) -> list[object]:
    """Return a value of a class of the job's own, from a savepoint of either format."""
    data = sb.keyed_header(sb.simple("String"), [sb.state("k", "VALUE", sb.kryo_of("a.B"))])
    key = b"\x02a"
    if canonical:
        content = sb.canonical_key_group([(0, [(b"\3" + key + b"\0", b"kryo")])])
        keyed = sb.canonical(3, [len(data)], sb.inline(data + content))
    else:
        content = sb.i32(3) + sb.i16(0) + sb.i32(1) + b"\0" + key + b"kryo"
        keyed = sb.native(3, [len(data)], sb.inline(data + content))
    with TemporaryDirectory() as folder:
        written = sb.write(Path(folder), [sb.operator([sb.subtask(managed_keyed=keyed)])])
        (operator,) = read_savepoint(written).operators
        return [entry.value for entry in operator.entries()]


def keyed_savepoint(folder: str, state: bytes, content: bytes, canonical: bool) -> Operator:
    """Return the operator of a savepoint whose key group 0 has this content."""
    header = sb.keyed_header(sb.simple("String"), [state])
    make = sb.canonical if canonical else sb.native
    keyed = make(0, [len(header)], sb.inline(header + content))
    subtasks = [sb.subtask(managed_keyed=keyed)]
    path = sb.write(Path(folder), [sb.operator(subtasks, max_parallelism=1)])
    return read_savepoint(path).operators[0]


def values_of_state(name: str, read: Callable[[Operator], Any]) -> Any:
    """Read an int under the key a of a state with a name, from a canonical savepoint."""
    content = sb.canonical_key_group([(0, [(b"\0\2a\0", sb.i32(7))])])
    with TemporaryDirectory() as folder:
        state = sb.state(name, "VALUE", sb.simple("Int"))
        return read(keyed_savepoint(folder, state, content, True))


def keys_in_summary(operator: Operator) -> int | None:
    [summed] = read_savepoint(operator.tasks()[0].files.base).summary().operators
    return summed.states[0].keys


def negated(operator: Operator) -> list[int]:
    import pyarrow as pa
    import pyarrow.compute as pc

    with TemporaryDirectory() as folder:
        old, new = operator.tasks()[0].files.base, f"{folder}/new"
        with SavepointWriter.from_existing_savepoint(old, new) as editor:
            editor.operator(operator.operator_id).map_batches(
                "v",
                lambda batch: pa.table({"row": batch["row"], "value": pc.negate(batch["value"])}),
            )
        [edited] = read_savepoint(new).operators
        return [entry.value for entry in edited.entries()]


def check_rows_of(operator: Operator) -> None:
    from support.inside.columns import difference_layout

    difference_layout(operator.states, operator.states)


def entry_values(operator: Operator) -> list[Any]:
    return [entry.value for entry in operator.entries()]


def map_under_a_long_key(canonical: bool) -> Any:
    """Read 4,000 user keys under a key of 32,000 characters, which the heap's format has once."""
    key, count = write_string("k" * 32_000), 4_000
    state = sb.state("s", "MAP", sb.map_of(sb.simple("Int"), sb.simple("Int")))
    items = [sb.i32(number) + b"\0" + sb.i32(number) for number in range(count)]
    if canonical:
        keys_of_map = [(b"\0" + key + b"\0" + item[:4], item[4:]) for item in items[:3]]
        content = sb.canonical_key_group([(0, keys_of_map)])
    else:
        content = sb.i32(0) + b"\0\0" + sb.i32(1) + b"\0" + key + sb.i32(count) + b"".join(items)
    with TemporaryDirectory() as folder:
        operator = keyed_savepoint(folder, state, content, canonical)
        return len(operator.get("k" * 32_000, "s"))


def changes_of_no_key() -> list[object]:
    """Read a changelog that does not say what its keys are."""
    text = logged(0, sb.state("count", "VALUE", sb.simple("Int")))
    keyed = changelog([], [inline([text])])
    with TemporaryDirectory() as folder:
        written = sb.write(Path(folder), [sb.operator([sb.subtask(managed_keyed=keyed)])])
        (operator,) = read_savepoint(written).operators
        return list(operator.entries())


def elsewhere(**options: Any) -> list[object]:
    """Return the values of a savepoint whose keyed state is in a file of another folder."""
    header = sb.keyed_header(sb.simple("String"), [sb.state("k", "VALUE", sb.simple("Int"))])
    content = sb.canonical_key_group([(0, [(b"\3\x02a\0", sb.i32(7))])])
    with TemporaryDirectory() as folder, TemporaryDirectory() as other:
        Path(other, "keyed").write_bytes(header + content)
        stream = sb.absolute(f"file:{other}/keyed", len(header + content))
        keyed = sb.canonical(3, [len(header)], stream)
        written = sb.write(Path(folder), [sb.operator([sb.subtask(managed_keyed=keyed)])])
        named = {name: value(other) for name, value in options.items()}
        (operator,) = read_savepoint(written, **named).operators
        return [entry.value for entry in operator.entries()]


def in_memory() -> int:
    """Return the operators of the example's savepoint, read through a URL."""
    import fsspec

    memory = fsspec.filesystem("memory")
    for path in (ROOT / "examples" / "data" / "savepoint").iterdir():
        with memory.open(f"/remedies/{path.name}", "wb") as file:
            file.write(path.read_bytes())
    return len(read_savepoint("memory://remedies").operators)


def hashes(key: object, key_type: KeyType | None = None) -> Callable[[], object]:
    """Make a call that hashes a key, or an array of keys where it is one."""
    if type(key).__module__.partition(".")[0] in ("numpy", "pyarrow", "pandas"):
        return lambda: array_hashes(key, key_type)
    return lambda: hash_code(key, key_type)


def array_skew(keys: list[str | None], nulls: str = "raise") -> list[int]:
    import pyarrow as pa

    from keygroups.arrays import skew_report

    report = skew_report({"key": pa.array(keys)}, "key", 128, 3, nulls=nulls)
    return [row.records for row in report.subtasks]


def array_hashes(key: Any, key_type: KeyType | None = None) -> list[int]:
    from keygroups import arrays

    found: list[int] = arrays.hash_code(key, key_type).tolist()
    return found


def numpy_array(*values: object, dtype: str) -> Any:
    import numpy as np

    return np.array(values, dtype=dtype)


def timestamps(zone: str | None) -> Any:
    import pyarrow as pa

    return pa.array([dt.datetime(1970, 1, 1, 0, 0, 5)], pa.timestamp("us", zone))


def series(dtype: str = "float64") -> Any:
    import pandas as pd

    return pd.Series([1.5, float("nan")], dtype=dtype)


class Message:
    """As the classes that protoc writes: it has a descriptor."""

    DESCRIPTOR = object()

    def __init__(self, text: str) -> None:
        self.text = text


LONG_TEXT = "xxxxxxx"
ONE_MS = dt.datetime(1970, 1, 1, 0, 0, 0, 1000)
FINE_TIME = dt.time(23, 0, 0, 971_123)
VARCHAR_2, TIME_3 = SQL_ROW("VARCHAR(2)"), SQL_ROW("TIME(3)")
SECONDS, MILLISECONDS = SQL_ROW("TIMESTAMP(0)"), SQL_ROW("TIMESTAMP(3)")
PLAN, LOAD = RescalePlan(10, 3, 4), KeyGroupLoad(10, [1] * 10)
ARRAYS = ("numpy", "pyarrow")

OF_KEYS = [
    Remedy(
        "types",
        "no tool can place a collection of Scala, ",
        lambda: parse_key_type("SEQ"),
        hashes("A", STRING),
        65,
    ),
    Remedy(
        "types",
        "no tool can place a BigDecimal of Scala, ",
        lambda: parse_key_type("SCALA_BIG_DECIMAL"),
        hashes(Decimal("1.5"), BIG_DEC),
        31 * 15 + 1,
    ),
    Remedy(
        "routing_inference",
        "observed and parallelism, or key_groups, must be given",
        infer_routing,
        lambda: infer_routing(key_groups=[("hello", 35), ("A", 104), ("B", 17)]).candidates,
        (RoutingCandidate(128, STRING),),
    ),
    Remedy(
        "_values/checks",
        "compute_key_group_for_key_hash takes a hash of your own",
        hashes(object()),
        lambda: compute_key_group_for_key_hash(97, 128),  # the String "a"
        compute_key_group_for_key_hash(hash_code("a"), 128),
    ),
    Remedy(
        "_values/checks",
        "key the job by its name (STRING)",
        hashes(Color.RED),
        hashes(Color.RED.name, STRING),
        82 * 31**2 + 69 * 31 + 68,
    ),
    Remedy(
        "_values/checks",
        "a subclass may stand for another Java class: pass key_type",
        hashes(Text("A")),
        hashes(Text("A"), STRING),
        65,
    ),
    Remedy(
        "_values/checks",
        "it may stand for several Java classes, such as Integer and Long: pass key_type",
        hashes(Seven()),
        hashes(Seven(), INT),
        7,
    ),
    Remedy(
        "_values/checks",
        "it may be a TUPLE, a ROW, a POJO or another class in Flink: pass key_type",
        hashes(Pair("A", 7)),
        hashes(Pair("A", 7), TUPLE(STRING, INT)),
        31 * 65 + 7,
    ),
    Remedy(
        "_values/checks",
        "round it first, for instance with struct.unpack('f', struct.pack('f', key))[0]",
        hashes(0.1, FLOAT),
        hashes(struct.unpack("f", struct.pack("f", 0.1))[0], FLOAT),
        0x3DCCCCCD,  # Float.floatToIntBits(0.1f)
    ),
    Remedy(
        "hashing",
        "pass key_type=BIG_INT if it is a BigInteger",
        hashes(2**70),
        hashes(2**70, BIG_INT),
        64 * 31**2,  # the ints 64, 0 and 0
    ),
    Remedy(
        "hashing",
        "pass key_type=INT or key_type=LONG",
        hashes(-1),
        lambda: (hash_code(-1, INT), hash_code(-1, LONG)),
        (-1, 0),
    ),
    Remedy(
        "_values/checks",
        "a protobuf message's hashCode is another one in every JVM: key the job by a field",
        hashes(Message("a")),
        hashes(Message("a").text, STRING),
        97,
    ),
    Remedy(
        "hashing",
        "which is OBJECTS_HASH(...) with a tuple of what is in a java.util.List, or HASHED with",
        hashes(["hello", 7]),
        hashes(("hello", 7), OBJECTS_HASH(STRING, INT)),
        -1220934346,
    ),
    Remedy(
        "hashing",
        "key is a {} of several types ({}): pass its key_type, which is HASHED with its hash",
        hashes({"a": 1, "b": "x"}),
        hashes((97 ^ 1) + (98 ^ 120), HASHED),
        122,
    ),
    Remedy(
        "hashing",
        "key is a list of several types ({}): pass its key_type",
        hashes([[1], [2**40]]),
        hashes([[1], [2**40]], LIST(LIST(LONG))),
        31 * (31 + 31 + 1) + 31 + 2**8,
    ),
    Remedy(
        "binary_row",
        "cut it in the first case, and declare {}, which gives the same bytes, in the other",
        hashes((LONG_TEXT,), VARCHAR_2),
        lambda: (hash_code(("x",), VARCHAR_2), hash_code((LONG_TEXT,), SQL_ROW("STRING"))),
        (1579225906, 598535031),
    ),
    Remedy(
        "binary_row",
        "Flink keeps no more of a key: drop the rest",
        hashes((FINE_TIME,), TIME_3),
        hashes((FINE_TIME.replace(microsecond=971_000),), TIME_3),
        87171055,
    ),
    Remedy(
        "binary_row",
        "drop it in the first case, and declare {}({}), which gives the same bytes, in the other",
        hashes((ONE_MS,), SECONDS),
        lambda: (
            hash_code((ONE_MS.replace(microsecond=0),), SECONDS),
            hash_code((ONE_MS,), MILLISECONDS),
        ),
        (-300363099, 1465514398),  # the BIGINTs 0 and 1 have these bytes
    ),
    Remedy(
        "hashing",
        "PyFlink takes it for {}, of hash code {}: pass as_pyflink_converts=True to PYFLINK for",
        hashes(True, PYFLINK(LONG)),
        hashes(True, PYFLINK(LONG, as_pyflink_converts=True)),
        62 + 1,
    ),
    Remedy(
        "_values/java_zones",
        "; write {} if that is meant",
        lambda: SQL_DATE("EST"),
        lambda: repr(SQL_DATE("America/Panama")),
        "SQL_DATE('America/Panama')",
    ),
    Remedy(
        "_values/java_zones",
        "; write {}",
        lambda: SQL_DATE("europe/berlin"),
        lambda: repr(SQL_DATE("Europe/Berlin")),
        "SQL_DATE('Europe/Berlin')",
    ),
    Remedy(
        "_values/java_zones", "update its tzdata", with_old_data, in_berlin, IN_BERLIN, ("tzdata",)
    ),
    Remedy(
        "_values/java_zones",
        "install the package tzdata",
        without_data,
        with_the_package,
        IN_BERLIN,
        ("tzdata",),
    ),
    Remedy(
        "cli/_key_text",
        "may be text or a compound key: give its type, as in --type STRING, --type "
        "'TUPLE(STRING, INT)' or, of a SQL job, --type 'SQL_ROW(\"STRING\", \"INT\")'",
        lambda: trace("('a', 1)"),
        lambda: trace("('a', 1)", "--type", "TUPLE(STRING, INT)"),
        31 * 97 + 1,
    ),
    Remedy(
        "cli/_key_text",
        "may be a STRING or {}: give its type, as in {}",
        lambda: trace("42"),
        lambda: (trace("42", "--type", "INT"), trace("42", "--type", "STRING")),
        (42, 52 * 31 + 50),
    ),
]

OF_PLANS = [
    Remedy(
        "explain",
        "as EXPLAIN CHANGELOG_MODE does",
        lambda: hash_exchanges(lookup_plan()),
        lambda: hash_exchanges(lookup_plan("CHANGELOG_MODE")),
        [("b",)],
    ),
    Remedy(
        "explain",
        "as EXPLAIN of one job prints it, whole and unchanged",
        lambda: hash_exchanges(lookup_plan("CHANGELOG_MODE").replace("+- ", "")),
        lambda: hash_exchanges(lookup_plan("CHANGELOG_MODE")),
        [("b",)],
    ),
    Remedy(
        "rescale",
        "key_type and scramble must be left out: a load has no keys",
        lambda: RescalePlan(12, 3, 4).compare_with_modulo(KeyGroupLoad(12, [1] * 12), INT),
        lambda: RescalePlan(12, 3, 4).compare_with_modulo(KeyGroupLoad(12, [1] * 12)).total,
        12,
    ),
    Remedy(
        "rescale",
        "cannot tell hash % parallelism: give the keys",
        lambda: PLAN.compare_with_modulo(LOAD),
        # Keys that are their own hash, as in the docstring: 14 of 20 change their subtask.
        lambda: PLAN.compare_with_modulo(range(20), scramble=abs).moved_by_modulo,
        14,
    ),
    Remedy(
        "job/_rest",
        "it points to {}, which is not followed: pass the URL of the REST API itself",
        lambda: job_of_two("2" * 32, "/old"),
        lambda: job_of_two("2" * 32),
        "job 2",
    ),
    Remedy(
        "job/_rest",
        "url must have no user and password, got one with an @: pass headers",
        lambda: read_job("http://me:token@localhost:8081"),
        lambda: guarded_job("token", headers=TOKEN),
        "job",
    ),
    Remedy(
        "job/_rest",
        ": pass ca_file, with the certificate of who signed that server's, in PEM",
        lambda: guarded_job("ca"),
        lambda: guarded_job("ca", **CA_FILE),
        "job",
    ),
    Remedy(
        "job/_rest",
        ": pass client_certificate, if the server asks for one",
        lambda: guarded_job("certificate", **CA_FILE),
        lambda: guarded_job(
            "certificate",
            **CA_FILE,
            client_certificate=(TLS / "client.pem", TLS / "client.key"),
        ),
        "job",
    ),
    Remedy(
        "job/_sign_in",
        "pass headers={'Authorization': 'Bearer ...'}",
        lambda: guarded_job("token"),
        lambda: guarded_job("token", headers=TOKEN),
        "job",
    ),
    Remedy(
        "job/_sign_in",
        "{} must be left out where the url is one of http",
        lambda: guarded_job("token", **CA_FILE, headers=TOKEN),
        lambda: guarded_job("token", headers=TOKEN),
        "job",
    ),
    Remedy(
        "job",
        "job_id must be given",
        job_of_two,
        lambda: job_of_two("2" * 32),
        "job 2",
    ),
    Remedy(
        "subtask_keys",
        "template must be left out for a key_type without fields",
        lambda: reached(INT, (...,)),
        lambda: reached(INT),
        [0, 1, 2],
    ),
    Remedy(
        "subtask_keys",
        "STRING, BOOLEAN or made of these; a field of another type takes a value from template",
        lambda: reached(TUPLE(DOUBLE, INT)),
        lambda: reached(TUPLE(DOUBLE, INT), (1.5, ...)),
        [0, 1, 2],
    ),
    Remedy(
        "subtask_keys",
        "template must leave a field of {} free with ...",
        lambda: reached(TUPLE(DOUBLE, INT), (1.5, 7)),
        lambda: reached(TUPLE(DOUBLE, INT), (1.5, ...)),
        [0, 1, 2],
    ),
    Remedy(
        "subtask_keys",
        "STRING are counted through; a field of another type takes a value from template",
        lambda: reached(SQL_ROW("DATE", "INT")),
        lambda: reached(SQL_ROW("DATE", "INT"), (dt.date(2024, 1, 1), ...)),
        [0, 1, 2],
    ),
]


def merged(name: str, uid: str) -> int:
    """Add an operator of a point to a savepoint, and return how many operators that has then."""
    with TemporaryDirectory() as folder:
        with SavepointWriter(f"{folder}/old") as writer:
            writer.add_operator("a", STRING, [ValueStateDescriptor("count", LONG)], 128, 1)
        old, new = f"{folder}/old", f"{folder}/new"
        with SavepointWriter.from_existing_savepoint(old, new) as editor:
            editor.add_operator_from(point(name).read(), uid)
        return len(read_savepoint(new).operators)


def copied(**named: Any) -> int:
    """Copy a savepoint that is read, or its path if nothing is named, with what is named."""
    known = point("2.3.0-heap-canonical")
    with TemporaryDirectory() as folder:
        source = known.read() if named else known.path
        with SavepointWriter.from_existing_savepoint(source, f"{folder}/new", **named):
            pass
        return len(read_savepoint(f"{folder}/new").operators)


def relocated(moved: dict[str, str] | None) -> str:
    """Relocate a checkpoint with a file that was in another folder; return its new path."""
    with TemporaryDirectory() as folder:
        handle = sb.operator_state([], sb.absolute("s3://old/log/1", 1))
        point = sb.write(Path(folder), [sb.operator([sb.subtask(managed_operator=handle)])])
        (point / "1").write_bytes(b"x")
        new = relocate(point, point, moved and dict.fromkeys(moved, folder))
        state = new.metadata.operators[0].subtasks[0].managed_operator
        assert state is not None
        return state.stream.path


def in_any_order(sort: bool, is_table: bool = False) -> list[str]:
    """Write keys of falling key groups, one by one or a table, and return those that are read."""
    with TemporaryDirectory() as folder:
        with SavepointWriter(f"{folder}/new") as writer:
            states = [ValueStateDescriptor("count", LONG)]
            operator = writer.add_operator("a", STRING, states, 128, 1, sort=sort)
            keys = ["A", "B"]  # key groups 104 and 17
            if is_table:
                table = import_module("pyarrow").table({"key": keys, "value": [5, 5]})
                operator.write_table("count", table)
                keys = []
            for key in keys:
                operator.write("count", key, 5)
        return [entry.key for entry in read_savepoint(f"{folder}/new").operators[0].entries()]


START = b"\x80\5\x95%c\0\0\0\0\0\0\0\x8c\6zz zz1\x94"
TWICE, ONCE = START % 21 + b"\x8c\6zz zz1\x94\x86\x94.", START % 14 + b"h\0\x86\x94."


def pickled_keys() -> Operator:
    """Return an operator of PyFlink's whose keys have several pickles."""
    point = corpus("pyflink") / "2.3.0-pickled-memo" / "savepoint"
    states = [ValueStateDescriptor("cnt", LONG)]
    return read_savepoint(point).operator("by-PK_MEMO").as_pyflink(pyflink.PICKLED, states)


OF_STATE = [
    Remedy(
        "_values/pickled",
        "key {} has other pickles too, by {}: pass a Pickle of the bytes, as entries have it",
        lambda: pickled_keys().get(("zz zz1", "zz zz1"), "cnt"),
        lambda: [
            pickled_keys().get(entry.key, "cnt") for entry in pickled_keys().entries(["cnt"])
        ],
        [entry.value for entry in pickled_keys().entries(["cnt"])],
    ),
    Remedy(
        "savepoint/_writing/operator_writer",
        ": pass sort=True to add_operator, which takes any order",
        lambda: in_any_order(False),
        lambda: in_any_order(True),
        ["B", "A"],
    ),
    Remedy(
        "savepoint/_edits/operators",
        "checkpoint: take a savepoint instead",
        lambda: merged("2.3.0-unaligned-checkpoint", "slow"),
        lambda: merged("2.3.0-heap-canonical", "by-string"),
        2,
    ),
    Remedy(
        "savepoint/_files/feed",
        "of {} {}: take a savepoint in canonical format, which has the key with each user key",
        lambda: map_under_a_long_key(canonical=False),
        lambda: map_under_a_long_key(canonical=True),
        3,
    ),
    Remedy(
        "savepoint/_savepoint",
        "{} must be left out for a Savepoint, ",
        lambda: copied(moved={}),
        copied,
        len(point("2.3.0-heap-canonical").read().operators),
    ),
    Remedy(
        "savepoint/_edits/relocate",
        "it is not known where the files of {} folders are now: pass moved={old: new} for {}",
        lambda: relocated(None),
        lambda: relocated({"s3://old/log": ""}),
        "1",
    ),
    Remedy(
        "_serializers/sql/java_types",
        "{} has fields without names, which Flink compares: name them, as in ROW<id INT>",
        lambda: serializer_of(SQL_ROW("ROW<INT>")).snapshot_bytes(),
        lambda: (
            Serializer.from_snapshot(
                serializer_of(SQL_ROW("ROW<id INT>")).snapshot_bytes()
            ).key_type
        ),
        SQL_ROW("ROW<`id` INT>"),
    ),
    Remedy(
        "_serializers/sql/rows",
        "use a savepoint of the job as the template of a SavepointWriter",
        lambda: written_after(None, "by-user", [ValueStateDescriptor("a", SQL_ROW("ARRAY<INT>"))]),
        lambda: written_after(
            job_point("2.3.0-sqlrank-hashmap-canonical").read(), "Deduplicate[556]"
        )[0],
        "SQL_ROW(BIGINT NOT NULL, STRING, ARRAY<INT>, TIMESTAMP(3))",
    ),
    Remedy(
        "savepoint/_writing/template",
        "which tells of state once its job has made it: run the job on a row, and take",
        lambda: written_after(point("2.3.0-sqlheap-canonical").read(), "src-q"),
        lambda: written_after(point("2.3.0-sqlheap-canonical").read(), "GroupAggregate[9]"),
        ["SQL_ROW(BIGINT)"],
    ),
    Remedy(
        "state_keys",
        "key_group must be given",
        lambda: CompositeKeySerializer(128, BYTES).serialize(b"a"),
        lambda: CompositeKeySerializer(128, BYTES).serialize(b"a", key_group=5),
        b"\5" + b"\0\0\0\1a" + b"\0",  # the key group, the length and the byte, VoidNamespace
    ),
    Remedy(
        "savepoint/_files/files",
        ": pass allow=[{}] if it is to be read there, or moved to say where it is now",
        elsewhere,
        lambda: elsewhere(allow=lambda folder: [folder]),
        [7],
    ),
    Remedy(
        "savepoint/_files/files",
        ", or moved to say where it is now",
        elsewhere,
        lambda: elsewhere(moved=lambda folder: {folder: folder}),
        [7],
    ),
    Remedy(
        "savepoint/_files/files",
        "pass {} to say where it is now",
        lambda: elsewhere(moved=lambda folder: {folder: f"{folder}/gone"}),
        lambda: elsewhere(moved=lambda folder: {folder: folder}),
        [7],
    ),
    Remedy(
        "savepoint/_state/writing/new_states",
        "{} must be the type without its last access, got {}: pass has_ttl=True",
        lambda: ValueStateDescriptor("seen", TtlSerializer(BYTES)),
        lambda: last_access(1_700_000_000_000, allow_any=False),  # a state with has_ttl=True
        1_700_000_000_000,
    ),
    Remedy(
        "savepoint/_state/stored_values",
        "tomorrow, got {}: pass allow_any_last_access=True if that is meant",
        lambda: last_access(1_700_000_000, allow_any=False),
        lambda: [
            last_access(1_700_000_000, allow_any=True),
            last_access(1_700_000_000_000, allow_any=False),
        ],
        [1_700_000_000, 1_700_000_000_000],
    ),
    Remedy(
        "_serializers/jvm/kryo_fields",
        "declare that class in KryoFields, such as java.util.ArrayList",
        lambda: list_by_kryo("java.lang.Object"),
        lambda: list_by_kryo("java.util.ArrayList"),
        Pojo("a.B", {"f": ["x"]}),
    ),
    Remedy(
        "savepoint/_state/formats/format",
        "take a savepoint in canonical format",
        lambda: kryo_values(canonical=False),
        lambda: kryo_values(canonical=True),
        [b"kryo"],
    ),
    Remedy(
        "savepoint/_state/formats/changelog",
        "take a savepoint in canonical format, which has no changes",
        changes_of_no_key,
        lambda: entries("2.3.0-changelog-canonical"),
        put("2.3.0-changelog-canonical"),
    ),
    Remedy(
        "savepoint/_edits/operators",
        "of an unaligned checkpoint: take a savepoint instead",
        lambda: converted("2.3.0-unaligned-checkpoint"),
        lambda: converted("2.3.0-heap-canonical"),
        put("2.3.0-heap-canonical"),
    ),
    Remedy(
        "savepoint/_edits/operators",
        "changes nothing, as {}: use convert_to_canonical to write a savepoint anew as it is",
        lambda: rewritten("2.3.0-heap-canonical", 128),
        lambda: converted("2.3.0-heap-canonical"),
        put("2.3.0-heap-canonical"),
    ),
]

OF_ARRAYS = [
    Remedy(
        "arrays/_scalars",
        "give those without one that of the JVM first",
        lambda: array_hashes(timestamps(None), SQL_TIMESTAMP("UTC")),
        lambda: array_hashes(timestamps("UTC"), SQL_TIMESTAMP("UTC")),
        [5000],
        ARRAYS,
    ),
    Remedy(
        "_serializers/base",
        "is not known: pass serializers={{}: ...} to say how it is read",
        lambda: Serializer.from_snapshot(MONEY_SNAPSHOT),
        lambda: str(Serializer.from_snapshot(MONEY_SNAPSHOT, serializers={"a.Money": Money})),
        "MONEY",
    ),
    Remedy(
        "_checks",
        "pass nulls='drop' to leave out the rows with one",
        lambda: array_skew(["A", None]),
        lambda: [array_skew(["A"]), array_skew(["A", None], "drop")],
        [[0, 0, 1]] * 2,
        ARRAYS,
    ),
    Remedy(
        "arrays/_inputs",
        "may stand for several Java classes: pass key_type",
        lambda: array_hashes(numpy_array(0.5, dtype="float32")),
        lambda: array_hashes(numpy_array(0.5, dtype="float32"), FLOAT),
        [0x3F000000],
        ARRAYS,
    ),
    Remedy(
        "arrays/_inputs",
        "pass key_type=INT or key_type=LONG",
        lambda: array_hashes(numpy_array(-1, dtype="int64")),
        lambda: [
            array_hashes(numpy_array(-1, dtype="int64"), key_type) for key_type in (INT, LONG)
        ],
        [[-1], [0]],
        ARRAYS,
    ),
    Remedy(
        "arrays/_inputs",
        "only bytes, is taken from objects: give it the dtype of its values",
        lambda: array_hashes(numpy_array(1, 2, dtype="object")),
        lambda: array_hashes(numpy_array(1, 2, dtype="object").astype("int64")),
        [1, 2],
        ARRAYS,
    ),
    Remedy(
        "arrays/_inputs",
        "or date alone: make it an array of the dtype of its",
        lambda: array_hashes([1, True]),
        lambda: array_hashes(numpy_array(1, True, dtype="int64")),
        [1, 1],
        ARRAYS,
    ),
    Remedy(
        "arrays/_inputs",
        "pass its to_numpy() if they are numbers, else convert_dtypes() first",
        lambda: array_hashes(series()),
        lambda: [
            array_hashes(series().to_numpy()),
            array_hashes(series().convert_dtypes().dropna()),
        ],
        # The high and the low half of Double.doubleToLongBits, xored.
        [[0x3FF80000, 0x7FF80000], [0x3FF80000]],
        (*ARRAYS, "pandas"),
    ),
]

STRINGS, LONGS = sb.simple("String"), sb.simple("Long")
# Key group 3 of the first subtask and 100 of the second, String "a", VoidNamespace.
PLACES = [(3, b"\x03\x02a\0"), (100, b"\x64\x02a\0")]
MIXED = [(LONGS, sb.i64(5)), (STRINGS, b"\x02x")]
HALF_A_PAIR = (STRINGS, b"\x02\x80\xb0\x03")  # UTF-16's U+D800, seven bits in each byte
ZEROS = (
    sb.map_of(sb.simple("Double"), sb.simple("Int")),
    sb.i32(2) + bytes(8) + b"\0" + sb.i32(1) + b"\x80" + bytes(7) + b"\0" + sb.i32(2),
)


def values_of(read: Callable[[Operator], list[Any]], *states: tuple[bytes, bytes]) -> list[Any]:
    """Read a savepoint in which each subtask has a value of a type of its own."""
    tasks = []
    for index, ((key_group, key), (serializer, value)) in enumerate(zip(PLACES, states)):
        header = sb.keyed_header(STRINGS, [sb.state("v", "VALUE", serializer)])
        stream = sb.inline(header + sb.canonical_key_group([(0, [(key, value)])]))
        tasks.append(
            sb.subtask(index, managed_keyed=sb.canonical(key_group, [len(header)], stream))
        )
    with TemporaryDirectory() as folder:
        path = sb.write(Path(folder), [sb.operator(tasks, parallelism=2)])
        return read(read_savepoint(path).operators[0])


def by_entry(operator: Operator) -> list[Any]:
    return [entry.value for entry in operator.entries()]


def by_column(operator: Operator) -> list[Any]:
    values: list[Any] = operator.to_arrow("v")["value"].to_pylist()
    return values


def by_pandas(operator: Operator) -> list[Any]:
    values: list[Any] = operator.to_pandas("v")["value"].tolist()
    return values


def by_polars(operator: Operator) -> list[Any]:
    values: list[Any] = operator.to_polars("v")["value"].to_list()
    return values


OF_EXTRAS = [
    Remedy(
        "savepoint/_columns/batches",
        "has another type in some subtasks: read it with Operator.entries",
        lambda: values_of(by_column, *MIXED),
        lambda: values_of(by_entry, *MIXED),
        [5, "x"],
        ARRAYS,
    ),
    Remedy(
        "savepoint/_columns/batches",
        "state {} has a name of {} characters, and rows have names of at most {}: read it with "
        "Operator.entries",
        lambda: values_of_state("s" * 1_025, check_rows_of),
        lambda: values_of_state("s" * 1_025, entry_values),
        [7],
        ("pyarrow",),
    ),
    Remedy(
        "savepoint/_columns/columns",
        "the name {} {}, which no column has: read it with Operator.entries",
        lambda: values_of_state("s\0", lambda operator: operator.to_arrow("s\0")),
        lambda: values_of_state("s\0", entry_values),
        [7],
        ("pyarrow",),
    ),
    Remedy(
        "savepoint/_columns/columns",
        "is nothing that a column holds unchanged: read it with Operator.entries",
        lambda: values_of(by_column, ZEROS),
        lambda: repr(values_of(by_entry, ZEROS)),
        "[[(0.0, 1), (-0.0, 2)]]",
        ARRAYS,
    ),
    Remedy(
        "savepoint/_columns/columns",
        "has half of a surrogate pair, which no text of a column holds: read it with",
        lambda: values_of(by_column, HALF_A_PAIR),
        lambda: values_of(by_entry, HALF_A_PAIR),
        ["\ud800"],
        ARRAYS,
    ),
    Remedy(
        "savepoint/_columns/table_rows",
        "write_table needs NumPy and PyArrow: pip install 'keygroups[arrays]'",
        lambda: imported("keygroups.savepoint._columns.table_rows", "pyarrow"),
        lambda: in_any_order(True, is_table=True),
        ["B", "A"],
        ARRAYS,
    ),
    Remedy(
        "savepoint/_edits/batch_mapping",
        "map_batches needs NumPy and PyArrow: pip install 'keygroups[arrays]'",
        lambda: imported("keygroups.savepoint._edits.batch_mapping", "pyarrow"),
        lambda: values_of_state("v", negated),
        [-7],
        ARRAYS,
    ),
    Remedy(
        "savepoint/_summary/tally",
        "a summary needs NumPy and PyArrow: pip install 'keygroups[arrays]'",
        lambda: imported("keygroups.savepoint._summary.tally", "pyarrow"),
        lambda: values_of_state("v", keys_in_summary),
        1,
        ARRAYS,
    ),
    Remedy(
        "savepoint/_columns/library_tables",
        "tables of state need NumPy and PyArrow: pip install 'keygroups[arrays]'",
        lambda: imported("keygroups.savepoint._columns.library_tables", "pyarrow"),
        lambda: values_of(by_column, MIXED[0]),
        [5],
        ARRAYS,
    ),
    Remedy(
        "savepoint/_columns/library_tables",
        "to_pandas needs pandas: pip install pandas",
        lacking("pandas")(lambda: values_of(by_pandas, MIXED[0])),
        lambda: values_of(by_pandas, MIXED[0]),
        [5],
        ("pandas", *ARRAYS),
    ),
    Remedy(
        "savepoint/_columns/library_tables",
        "to_polars needs Polars: pip install polars",
        lacking("polars")(lambda: values_of(by_polars, MIXED[0])),
        lambda: values_of(by_polars, MIXED[0]),
        [5],
        ("polars", *ARRAYS),
    ),
    Remedy(
        "arrays",
        "pip install 'keygroups[arrays]'",
        lambda: imported("keygroups.arrays", "pyarrow"),
        lambda: array_hashes(numpy_array(7, dtype="int32")),
        [7],
        ARRAYS,
    ),
    Remedy(
        "savepoint/_files/stores",
        "pip install 'keygroups[savepoint]'",
        lacking("fsspec")(lambda: read_savepoint("memory://remedies")),
        in_memory,
        3,
        ("fsspec",),
    ),
    Remedy(
        "savepoint/_files/compression",
        "pip install 'keygroups[savepoint]'",
        lacking("cramjam")(lambda: entries("2.3.0-snappy-canonical")),
        lambda: entries("2.3.0-snappy-canonical"),
        put("2.3.0-snappy-canonical"),
        ("cramjam",),
    ),
    Remedy(
        "_serializers/jvm/avro",
        "pip install 'keygroups[savepoint]'",
        lacking("fastavro")(lambda: avro_of("A").decode(b"\0\0\0\5")),
        lambda: avro_of("A").decode(b"\0\0\0\5"),
        {"n": 5},
        ("fastavro",),
    ),
    Remedy(
        "savepoint/_files/checksums",
        "pip install 'keygroups[savepoint]'",
        lacking("xxhash")(lambda: entries("2.3.0-rocksinc-native")),
        lambda: entries("2.3.0-rocksinc-native"),
        put("2.3.0-rocksinc-canonical"),
        ("xxhash",),
    ),
    Remedy(
        "_show/tables",
        "pip install pandas",
        lacking("pandas")(LOAD.to_pandas),
        lambda: LOAD.to_pandas()["weight"].tolist(),
        [1] * 10,
        ("pandas",),
    ),
    Remedy(
        "_show/plots",
        "pip install 'keygroups[plot]'",
        lacking("matplotlib")(lambda: LOAD.plot(2)),
        lambda: LOAD.plot(2).get_ylabel(),
        "weight",
        ("matplotlib",),
    ),
    Remedy(
        "cli/_completion",
        "completion needs shtab: pip install 'keygroups[completion]'",
        lacking("shtab")(lambda: command("completion", "fish")),
        lambda: command("completion", "fish")["shell"],
        "fish",
        ("shtab",),
    ),
    Remedy(
        "testing",
        "pip install hypothesis",
        lambda: in_another_python(  # here the strategies may be loaded already
            "import sys; sys.modules['hypothesis'] = None; import keygroups.testing; "
            "keygroups.testing.keys(keygroups.types.INT)"
        ),
        lambda: find(keys(INT), lambda key: key > 5),
        6,
        ("hypothesis",),
    ),
]
REMEDIES = [*OF_KEYS, *OF_PLANS, *OF_STATE, *OF_ARRAYS, *OF_EXTRAS]


@pytest.mark.branch
@pytest.mark.parametrize("remedy", [remedy.param() for remedy in REMEDIES])
def test_remedy(remedy: Remedy) -> None:
    remedy.try_it()


@pytest.mark.long
def test_every_remedy_is_tried() -> None:
    """A message that says what to do has its case above; each case has its message."""
    assert untried(REMEDIES, ADVICE, of_spark=False) == []


def test_extras_that_are_named_bring_what_is_missing() -> None:
    """What `pip install` is told to install is there, and has the module in it."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    for remedy in OF_EXTRAS:
        extra = re.search(r"keygroups\[(\w+)\]", remedy.says)
        if extra:
            listed = re.search(rf"^{extra[1]} = \[(.*?)\]$", project, re.MULTILINE)
            assert listed
            assert all(f'"{module}>=' in listed[1] for module in remedy.needs)


def test_a_new_message_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = '"""Pass it by."""\nraise ValueError(f"key {1} is odd: " "pass key_type=EVEN")\n'
    (tmp_path / "new.py").write_text(source, "utf-8")
    monkeypatch.setattr("support.remedies._ROOT", tmp_path)
    assert list(remedies_in_source(of_spark=False)) == [
        ("new", "key {} is odd: pass key_type=EVEN")
    ]
