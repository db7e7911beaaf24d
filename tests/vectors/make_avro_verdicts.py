"""Write avro_verdicts.jsonl: what Avro says of pairs of schemas, old and new.

`python tests/vectors/make_avro_verdicts.py` asks the Avro that PySpark has among its jars; it
needs a JDK. Flink asks the same of these classes: AvroSerializerSnapshot.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SOURCE = FOLDER.parent / "support" / "flink" / "java" / "AvroVerdicts.java"
INTS: list[Any] = [{"name": "a", "type": "int"}]
SCALARS = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def record(fields: list[Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "namespace": "x", "fields": fields} | more


def field(schema: Any, **more: Any) -> dict[str, Any]:
    """Return a record of one field."""
    return record([{"name": "a", "type": schema} | more])


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols)} | more


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size} | more


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def mapped(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def other(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return record([*INTS, {"name": name, "type": schema} | more])


TREE = record([*INTS, {"name": "next", "type": ["null", "x.R"]}])
OLDER_TREE = record([{"name": "a", "type": "long"}, {"name": "next", "type": ["null", "R"]}])
AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
INNER = {"type": "record", "name": "I", "fields": INTS}
SAME_INNER = record([{"name": "a", "type": INNER}, {"name": "b", "type": "I"}])
FULL_INNER = record([{"name": "a", "type": INNER}, {"name": "b", "type": "x.I"}])
TWO = record([{"name": "a", "type": "int"}, {"name": "b", "type": "int"}])

FIELDS: list[tuple[Any, Any]] = [
    *((old, new) for old in SCALARS for new in SCALARS),
    ("int", {"type": "int"}),
    ("string", {"type": "string", "avro.java.string": "String"}),
    ("int", {"type": "int", "logicalType": "date"}),
    (AMOUNT, AMOUNT | {"scale": 3}),
    ("bytes", AMOUNT),
    (array("int"), array("int")),
    (array("int"), array("long")),
    (array("long"), array("int")),
    (array("int"), mapped("int")),
    (mapped("int"), mapped("double")),
    (mapped("string"), mapped("int")),
    (enum("A", "B"), enum("A", "B")),
    (enum("A", "B"), enum("A", "B", "C")),
    (enum("A", "B"), enum("B", "A")),
    (enum("A", "B"), enum("A")),
    (enum("A", "B"), enum("A", default="A")),
    (enum("A", "B"), enum("A", "B", default="A")),
    (enum("A"), enum("A", name="G")),
    (enum("A"), enum("A", name="G", aliases=["E"])),
    (enum("A"), enum("A", name="G", aliases=["x.E"])),
    (enum("A"), enum("A", namespace="y")),
    (enum("A"), "string"),
    (fixed(2), fixed(2)),
    (fixed(2), fixed(3)),
    (fixed(2), fixed(2, name="G")),
    (fixed(2), fixed(2, namespace="y")),
    (fixed(2), "bytes"),
    ("int", ["null", "int"]),
    ("int", ["null", "long"]),
    ("long", ["null", "int"]),
    (["null", "int"], "int"),
    (["int"], "int"),
    (["int"], "long"),
    (["null", "int"], ["null", "int"]),
    (["null", "int"], ["int", "null"]),
    (["null", "int"], ["null", "int", "string"]),
    (["null", "int", "string"], ["null", "int"]),
    (["null", "int"], ["null", "long"]),
    (["int", "string"], ["string", "double"]),
    (["null", enum("A", "B")], ["null", enum("A")]),
    (["null", INNER], ["null", INNER | {"fields": []}]),
    (INNER, INNER | {"name": "J"}),
    (INNER, INNER | {"name": "J", "aliases": ["I"]}),
    (INNER, INNER | {"fields": [*INTS, {"name": "b", "type": "int"}]}),
    (INNER, ["null", INNER | {"name": "J"}]),
    (INNER, ["null", INNER | {"fields": [{"name": "a", "type": "long"}]}]),
    ([INNER], INNER | {"fields": [{"name": "a", "type": "long"}]}),
    (array(INNER), array(INNER | {"fields": []})),
]
RECORDS: list[tuple[Any, Any]] = [
    (record(INTS), record(INTS)),
    (record(INTS), record(INTS, doc="text")),
    (record(INTS), record(INTS, aliases=["S"])),
    (record(INTS), record(INTS, owner="me")),
    (record(INTS), record(INTS, namespace="y")),
    (record(INTS), record(INTS, name="S")),
    (record(INTS), record(INTS, name="S", aliases=["R"])),
    (record(INTS), record(INTS, name="S", aliases=["y.R"])),
    (record(INTS), record(INTS, name="y.R")),
    (record(INTS), record(INTS, name="x.R", namespace="y")),
    (record(INTS), record([])),
    (record(INTS), other("b", "int")),
    (record(INTS), other("b", "int", default=5)),
    (record(INTS), other("b", ["null", "int"], default=None)),
    (record(INTS), other("b", ["null", "int"])),
    (record(INTS), other("b", enum("A", default="A"))),
    (record(INTS), record([{"name": "b", "type": "int", "aliases": ["a"]}])),
    (record(INTS), record([{"name": "b", "type": "long", "aliases": ["a"]}])),
    (TWO, record([{"name": "b", "type": "int", "aliases": ["c", "a"]}, *INTS])),
    (TWO, record([TWO["fields"][1], TWO["fields"][0]])),
    (field("int"), field("int", doc="text")),
    (field("int"), field("int", default=5)),
    (field("int", default=5), field("int", default=6)),
    (field("double", default=5), field("double", default=5.0)),
    (field("int"), field("int", order="ascending")),
    (field("int"), field("int", order="descending")),
    (field("int"), field("int", aliases=["b"])),
    (field("int"), field("int", owner="me")),
    (TREE, TREE),
    (TREE, OLDER_TREE),
    (OLDER_TREE, TREE),
    (TREE, TREE | {"fields": [*TREE["fields"], {"name": "b", "type": "int", "default": 1}]}),
    (TREE, TREE | {"fields": [*TREE["fields"], {"name": "b", "type": "int"}]}),
    (SAME_INNER, FULL_INNER),
    (SAME_INNER, record([{"name": "a", "type": INNER}, {"name": "b", "type": "int"}])),
    (record(INTS), record(INTS, type="error")),
    ("int", "int"),
    ("int", "long"),
    ("long", "int"),
    (["null", "int"], ["null", "long"]),
]


def pairs() -> Iterator[tuple[Any, Any]]:
    """Yield the schemas of each pair, old and new."""
    yield from ((field(old), field(new)) for old, new in FIELDS)
    yield from RECORDS


def main() -> None:
    spark = find_spec("pyspark")
    assert spark is not None, "needs PySpark"
    assert spark.submodule_search_locations is not None
    jars = Path(spark.submodule_search_locations[0], "jars")
    [avro] = jars.glob("avro-[0-9]*.jar")
    names = (avro.name, "jackson-*.jar", "slf4j-api-*.jar", "commons-*.jar")
    class_path = ":".join(str(jar) for name in names for jar in jars.glob(name))
    asked = [tuple(map(json.dumps, pair)) for pair in pairs()]
    text = "".join("\t".join(line) + "\n" for line in asked)
    command = ["java", "-cp", class_path, str(SOURCE)]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    with (FOLDER / "avro_verdicts.jsonl").open("w", encoding="ascii") as file:
        print(json.dumps({"avro": avro.stem.removeprefix("avro-")}), file=file)
        for (old, new), verdict in zip(asked, done.stdout.splitlines(), strict=True):
            print(json.dumps({"old": old, "new": new, "verdict": verdict}), file=file)


if __name__ == "__main__":
    main()
