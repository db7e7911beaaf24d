"""Real Flink, for tests: its jar on Spark's class path, and its answers about any key.

A key goes to Java as a document for `java.beans.XMLDecoder`, which builds the object inside
the JVM and passes it to Flink there. Sent value by value, py4j would turn a Short into an int
on its way back and a lone surrogate into a question mark.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keygroups import types
from keygroups.logical_types import LogicalType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    # Else every call of a PySpark function looks up where it is called from.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# For many queries of few rows the better compiler does not pay. The quick one's code for a
# thousand queries does not fit in its usual cache: what is thrown out there is compiled anew.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
ASSIGNMENT = "org.apache.flink.runtime.state.KeyGroupRangeAssignment"
PYFLINK_SELECTOR = "org.apache.flink.streaming.api.functions.python.KeyByKeySelector"

_ROW_KINDS = {"+I": "INSERT", "-U": "UPDATE_BEFORE", "+U": "UPDATE_AFTER", "-D": "DELETE"}
_PARSED = {
    "BIG_INT": ("java.math.BigInteger", "new"),
    "BIG_DEC": ("java.math.BigDecimal", "new"),
    "LOCAL_DATE": ("java.time.LocalDate", "parse"),
    "LOCAL_TIME": ("java.time.LocalTime", "parse"),
    "LOCAL_DATE_TIME": ("java.time.LocalDateTime", "parse"),
    "INSTANT": ("java.time.OffsetDateTime", "parse"),
    "UUID": ("java.util.UUID", "fromString"),
}
# SQL's types: the scalar key type of the same values, and the end of BinaryRowWriter.write...
_SQL_TYPES = {
    "TINYINT": ("BYTE", "Byte"),
    "SMALLINT": ("SHORT", "Short"),
    "INT": ("INT", "Int"),
    "BIGINT": ("LONG", "Long"),
    "DECIMAL": ("BIG_DEC", "Decimal"),
    "CHAR": ("STRING", "String"),
    "VARCHAR": ("STRING", "String"),
    "VARBINARY": ("", "Binary"),
    "DATE": ("", "Int"),
    "TIME": ("", "Int"),
    "TIMESTAMP": ("LOCAL_DATE_TIME", "Timestamp"),
    "TIMESTAMP_LTZ": ("INSTANT", "Timestamp"),
}
_MAX_COMPACT = {"Decimal": 18, "Timestamp": 3}
_DATA = "org.apache.flink.table.data"


def flink_jar() -> Path | None:
    """Return the flink-dist jar of the Flink that is tested, or None where there is none.

    That is the installed apache-flink-libraries, or the version that the environment variable
    FLINK_VERSION names, which is installed beside it when it is first asked for.
    """
    named = os.environ.get("FLINK_VERSION")
    if named:
        beside = Path(sys.prefix, f"flink-{named}")
        if not beside.exists():
            wanted = f"apache-flink-libraries=={named}"
            install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
            subprocess.run([*install, str(beside), wanted], check=True)
        folders = [str(beside / "pyflink")]
    else:
        spec = importlib.util.find_spec("pyflink")  # finds it without running its __init__
        folders = list((spec and spec.submodule_search_locations) or ())
    for folder in folders:
        for jar in Path(folder, "lib").glob("flink-dist*.jar"):
            return jar
    return None


def flink_version(dist: Path) -> str:
    """Return the version of that jar, whose name until 1.14 has that of Scala too."""
    return dist.stem.rpartition("-")[2]


def version_numbers(version: str) -> tuple[int, ...]:
    """Return a version as what compares as versions do."""
    return tuple(map(int, version.split(".")))


def flink_class_path(dist: Path) -> str:
    """Return the class path of that jar and those beside it of SQL's rows and PyFlink's keys."""
    jars = [
        dist,
        *dist.parent.glob("flink-table*.jar"),
        *dist.parents[1].glob("opt/flink-python*.jar"),
    ]
    return os.pathsep.join(map(str, jars))


def local_session(master: str = "local[2]") -> SparkSession:
    """Start Spark in this process, with Flink on its class path where it is installed.

    The environment variable KEYGROUPS_TEST_REMOTE makes it a Spark Connect session instead: a
    remote address, or `local[2]` for a server of its own.
    """
    from pyspark.sql import SparkSession  # not at the top: it may be missing

    os.environ["PYSPARK_PYTHON"] = sys.executable  # or it is whatever python3 is on the PATH
    remote = os.environ.get("KEYGROUPS_TEST_REMOTE")
    if remote:
        # A server keeps the plans that it ran, and deep keys make long ones.
        os.environ.setdefault("SPARK_DRIVER_MEMORY", "3g")
        session = SparkSession.builder.remote(remote).getOrCreate()
        for name in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions"):
            session.conf.set(name, SETTINGS[name])
        return session
    jar = flink_jar()
    if jar is not None:
        # After Spark's own jars: flink-dist brings older copies of classes that Spark needs,
        # and spark.driver.extraClassPath would put them first.
        os.environ["SPARK_DIST_CLASSPATH"] = flink_class_path(jar)
    builder = SparkSession.builder.master(master).appName("keygroups tests")
    _remember_names()
    # With Flink come many rows.
    options = f"{QUICK_JVM} -Xms1g -Xmn500m"  # its memory from the start: few collections
    quick = {} if jar else {"spark.driver.extraJavaOptions": options}
    for name, value in (SETTINGS | quick).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _remember_names() -> None:
    """Have py4j remember what a name is in the JVM: every look-up searches all jars of Spark."""
    from py4j.java_gateway import JavaPackage, JVMView

    def remembering(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def get(self: Any, name: str) -> Any:
            value = self.__dict__[name] = look_up(self, name)
            return value

        return get

    for scope in (JVMView, JavaPackage):
        scope.__getattr__ = remembering(scope.__getattr__)


class FlinkOracle:
    """What Flink answers about keys given as a key type and a Python value."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark.sparkContext._jvm
        self.assignment = jvm.org.apache.flink.runtime.state.KeyGroupRangeAssignment
        self.math_utils = jvm.org.apache.flink.util.MathUtils
        self._type_parser = jvm.org.apache.flink.table.types.logical.utils.LogicalTypeParser
        environment = jvm.org.apache.flink.runtime.util.EnvironmentInformation
        self.flink_version: str = environment.getVersion()
        self.java_version: str = jvm.java.lang.System.getProperty("java.version")
        # py4j looks a class up by every prefix of its name, which takes longer than the call.
        self._decoder = jvm.java.beans.XMLDecoder
        self._stream = jvm.java.io.ByteArrayInputStream
        self._time_zone = jvm.java.util.TimeZone
        self._zone = self._time_zone.getDefault()
        # By itself the decoder prints what went wrong and goes on with null.
        self._errors = jvm.java.util.ArrayDeque()
        self._listener = jvm.java.beans.EventHandler.create(
            jvm.java.lang.Class.forName("java.beans.ExceptionListener"), self._errors, "add", ""
        )

    def ask(
        self, keys: Sequence[tuple[types.KeyType, object]], max_parallelisms: Iterable[int]
    ) -> list[tuple[int, list[int]]]:
        """Return each key's hashCode and its key group at each max parallelism."""
        mps = list(max_parallelisms)
        made, questions = [], []
        for index, (key_type, key) in enumerate(keys):
            made.append(
                f'<void id="key{index}" class="java.util.Objects" method="requireNonNull">'
                f"{_java(key_type, key)}</void>"
            )
            made_key = f'<object idref="key{index}"/>'
            questions.append(_call("java.util.Objects", "hashCode", made_key))
            questions += [_call(ASSIGNMENT, "assignToKeyGroup", made_key, _int(mp)) for mp in mps]
        answers = _call("java.util.ArrayList", "new", _adds(questions))
        document = f"<java>{''.join(made)}{answers}</java>"
        self._errors.clear()
        try:
            decoder = self._decoder(self._stream(document.encode()), None, self._listener)
            made_answers = decoder.readObject()
        finally:
            self._time_zone.setDefault(self._zone)
        if self._errors.size():
            raise RuntimeError(f"{self._errors.toString()} for {keys}")
        numbers = json.loads(made_answers.toString())
        step = 1 + len(mps)
        return [(numbers[i], numbers[i + 1 : i + step]) for i in range(0, len(numbers), step)]

    def logical_type(self, text: str) -> str | None:
        """Return the type of a text as Flink SQL itself writes it, or None where it refuses it."""
        from py4j.protocol import Py4JJavaError

        try:
            return str(self._type_parser.parse(text, None).asSummaryString())
        except Py4JJavaError as error:
            if "ValidationException" not in error.java_exception.toString():
                raise
            return None


def _java(key_type: types.KeyType, value: Any) -> str:
    """Return the XML of a key's Java object."""
    if isinstance(key_type, types.PYFLINK):  # Python sends a row of key and element
        sent = _row(types.ROW(key_type.element, types.STRING), (value, "element"))
        made = f'<void id="pyflink" method="getKey">{sent}</void>'
        return f'<void class="{PYFLINK_SELECTOR}">{made}</void><object idref="pyflink"/>'
    if isinstance(key_type, types.OPTIONAL):
        return _call("java.util.Optional", "ofNullable", _java(key_type.element, value))
    if isinstance(key_type, types.PYFLINK):
        return _row(types.ROW(key_type.element), (value,))
    if isinstance(key_type, types.SQL_ROW):
        return _binary_row(key_type, value)
    if value is None:
        return "<null/>"
    if isinstance(key_type, types.TUPLE):
        fields = map(_java, key_type.fields, value)
        return _call(f"org.apache.flink.api.java.tuple.Tuple{len(value)}", "new", *fields)
    if isinstance(key_type, types.ROW):
        return _row(key_type, value)
    if isinstance(key_type, (types.LIST, types.SET)):
        cls = "java.util.ArrayList" if isinstance(key_type, types.LIST) else "java.util.HashSet"
        return _call(cls, "new", _adds(_java(key_type.element, element) for element in value))
    if isinstance(key_type, types.MAP):
        entries = (_java(key_type.key, k) + _java(key_type.value, v) for k, v in value.items())
        puts = (f'<void method="put">{entry}</void>' for entry in entries)
        return _call("java.util.HashMap", "new", *puts)
    if isinstance(key_type, types.JavaSqlType):
        return _sql(key_type, value)
    return _scalar(repr(key_type), value)


def _scalar(name: str, value: Any) -> str:
    if name == "STRING":
        return _string(value)
    if name == "CHAR":
        return f'<char code="#{ord(value):x}"/>'
    if name in ("FLOAT", "DOUBLE"):
        # Java reads Python's hexadecimal digits, which are exact, and its own two words.
        text = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), value.hex())
        return f"<{name.lower()}>{text}</{name.lower()}>"
    if name in _PARSED:
        text = value.isoformat() if isinstance(value, (dt.date, dt.time)) else str(value)
        parsed = _call(*_PARSED[name], _string(text))
        return _call("java.time.Instant", "from", parsed) if name == "INSTANT" else parsed
    return f"<{name.lower()}>{str(value).lower()}</{name.lower()}>"


def _row(key_type: types.ROW, value: Sequence[object]) -> str:
    cls = "org.apache.flink.types.Row"
    kind = f'<object class="org.apache.flink.types.RowKind" field="{_ROW_KINDS[key_type.kind]}"/>'
    if key_type.names is None:
        labels = [_int(index) for index in range(len(value))]
        start = _call(cls, "withPositions", kind, _int(len(value)))
    else:
        labels = [_string(name) for name in key_type.names]
        start = _call(cls, "withNames", kind)
    fields = zip(labels, map(_java, key_type.fields, value))
    sets = (f'<void method="setField">{label}{field}</void>' for label, field in fields)
    return start.removesuffix("</object>") + "".join(sets) + "</object>"


def _binary_row(key_type: types.SQL_ROW, values: Sequence[object]) -> str:
    """Write a row field by field, as the code that Flink's planner generates for a key does."""
    row = _call(f"{_DATA}.binary.BinaryRowData", "new", _int(len(values)))
    writes = map(_write, range(len(values)), key_type.fields, values)
    return (
        f'<void id="row" class="java.util.Objects" method="requireNonNull">{row}</void>'
        f'<void class="{_DATA}.writer.BinaryRowWriter" method="new"><object idref="row"/>'
        f'{"".join(writes)}<void method="complete"/></void><object idref="row"/>'
    )


def _write(index: int, field: LogicalType, value: object) -> str:
    """CodeGenUtils.binaryWriterWriteField and binaryWriterWriteNull."""
    _, name = _SQL_TYPES.get(field.name, ("", field.name.capitalize()))
    precision = field.precision or 0
    if value is None and precision <= _MAX_COMPACT.get(name, 9):
        return f'<void method="setNullAt">{_int(index)}</void>'
    arguments = [_int(index), _internal(field, value)]
    if name in _MAX_COMPACT:
        arguments.append(_int(precision))
    if name in ("Array", "Row"):
        serializers = "org.apache.flink.table.runtime.typeutils.InternalSerializers"
        arguments.append(_call(serializers, "create", _logical_type(field)))
    return f'<void method="write{name}">{"".join(arguments)}</void>'


def _internal(field: LogicalType, value: Any) -> str:
    """Return the XML of Flink's own object for a value in a row."""
    if value is None:
        return "<null/>"
    if field.name in ("BINARY", "VARBINARY"):
        signed = (f"<byte>{(byte ^ 128) - 128}</byte>" for byte in value)
        return f'<array class="byte">{"".join(signed)}</array>'
    if field.name == "ARRAY":
        elements = "".join(_internal(field.fields[0], element) for element in value)
        array = f'<array class="java.lang.Object">{elements}</array>'
        return _call(f"{_DATA}.GenericArrayData", "new", array)
    if field.name == "ROW":
        fields = enumerate(map(_internal, field.fields, value))
        sets = (f'<void method="setField">{_int(i)}{inner}</void>' for i, inner in fields)
        return _call(f"{_DATA}.GenericRowData", "new", _int(len(value)), *sets)
    if field.name == "DATE":  # DateTimeUtils.toInternal, which 1.13 has elsewhere
        return _int((value - dt.date(1970, 1, 1)).days)
    if field.name == "TIME":
        since_midnight = dt.datetime.combine(dt.date.min, value) - dt.datetime.min
        return _int(since_midnight // dt.timedelta(milliseconds=1))
    scalar_type, _ = _SQL_TYPES.get(field.name, (field.name, ""))
    scalar = _scalar(scalar_type, value)
    if field.name in ("CHAR", "VARCHAR"):
        return _call(f"{_DATA}.StringData", "fromString", scalar)
    if field.name == "DECIMAL":
        numbers = _int(field.precision or 0) + _int(field.scale or 0)
        return _call(f"{_DATA}.DecimalData", "fromBigDecimal", scalar, numbers)
    if field.name == "TIMESTAMP":
        return _call(f"{_DATA}.TimestampData", "fromLocalDateTime", scalar)
    if field.name == "TIMESTAMP_LTZ":
        return _call(f"{_DATA}.TimestampData", "fromInstant", scalar)
    return scalar


def _logical_type(field: LogicalType) -> str:
    """Return the XML of Flink's LogicalType; Flink wants names in a ROW."""
    parser = "org.apache.flink.table.types.logical.utils.LogicalTypeParser"
    return _call(parser, "parse", _string(_with_names(field)), "<null/>")


def _with_names(field: LogicalType) -> str:
    if field.name not in ("ROW", "ARRAY"):
        return str(field)
    parts = list(map(_with_names, field.fields))
    if field.name == "ROW":
        parts = [f"f{index} {part}" for index, part in enumerate(parts)]
    return f"{field.name}<{', '.join(parts)}>{'' if field.nullable else ' NOT NULL'}"


def _sql(key_type: types.JavaSqlType, value: Any) -> str:
    zone = _call("java.util.TimeZone", "getTimeZone", _string(str(key_type.zone)))
    start = f'<void class="java.util.TimeZone" method="setDefault">{zone}</void>'
    if isinstance(key_type, types.SQL_DATE):
        return start + _call("java.sql.Date", "valueOf", _string(value.isoformat()))
    if isinstance(key_type, types.SQL_TIMESTAMP):
        return start + _call("java.sql.Timestamp", "valueOf", _string(value.isoformat(" ")))
    # Time.valueOf reads whole seconds only.
    assert isinstance(key_type, types.SQL_TIME)
    text = _string(f"1970-01-01 {value.isoformat()}")
    return (
        f'{start}<void class="java.sql.Timestamp" method="valueOf">{text}'
        f'<void id="millis" property="time"/></void>'
        + _call("java.sql.Time", "new", '<object idref="millis"/>')
    )


def _call(cls: str, method: str, *arguments: str) -> str:
    return f'<object class="{cls}" method="{method}">{"".join(arguments)}</object>'


def _adds(elements: Iterable[str]) -> str:
    return "".join(f'<void method="add">{element}</void>' for element in elements)


def _int(value: int) -> str:
    return f"<int>{value}</int>"


def _string(text: str) -> str:
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    marked = (chr(u) if chr(u).isalnum() and u < 128 else f'<char code="#{u:x}"/>' for u in units)
    return f"<string>{''.join(marked)}</string>"
