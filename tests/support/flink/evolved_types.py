"""Types of values that are others in a new job than in the old one, and the classes of both.

`java/Verdicts.java` says how a type is written.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from support.flink.flink_oracle import flink_class_path
from support.flink.flink_sql import JAVA_FOLDER

POJOS = {
    "Same": ("public int a; public String b;",) * 2,
    "Added": ("public int a;", "public int a; public long b;"),
    "Removed": ("public int a; public long b;", "public int a;"),
    "Renamed": ("public int a;", "public int b;"),
    "Retyped": ("public int a; public long b;", "public int a; public String b;"),
    "Widened": ("public int a;", "public long a;"),
    "Boxed": ("public int a;", "public Integer a;"),
    "Ordered": ("public int a; public int b;", "public int b; public int a;"),
    "Outer": ("public Added in;",) * 2,
    "OuterRetyped": ("public Retyped in;",) * 2,
    "AddedAndRetyped": ("public int a;", "public long a; public int b;"),
    "WithEnum": ("public More e;",) * 2,
    "WithFewer": ("public Fewer e;",) * 2,
    "WithList": ("public java.util.ArrayList<String> list;",) * 2,
    "RemovedKept": ("public int a; public Stayed in;", "public int a;"),
    "RemovedGone": ("public int a; public Moved in;", "public int a;"),
    "RemovedGeneric": ("public int a; public GoneGeneric in;", "public int a;"),
    "RenamedClass": ("public int a; public Moved in;", "public int a; public MovedTo in;"),
    "WithList2": ("public java.util.List<String> list;", "public java.util.List<Long> list;"),
    "Base": ("public int a;",) * 2,
    "Left": ("public int a;",) * 2,
}
"""Fields of classes, in the old job and in the new one."""


def _key(name: str, fields: str) -> str:
    """Return a class whose first field says which key it is."""
    return (
        f"public class {name} {{ public int {fields}; public {name}() {{}} "
        f"public boolean equals(Object o) {{ return o instanceof {name} && a == (({name}) o).a; "
        "} "
        "public int hashCode() { return a; } }"
    )


ENUMS = {
    "Equal": ("A, B",) * 2,
    "More": ("A, B", "A, B, C"),
    "Between": ("A, B", "A, C, B"),
    "Swapped": ("A, B", "B, A"),
    "Fewer": ("A, B", "A"),
    "Other": ("A, B", "A, C"),
}
SOURCES = {
    "Closed": (
        "public class Closed { public int a; public Closed() {} }",
        "public class Closed { public final int a; public Closed(int a) { this.a = a; } }",
    ),
    "Opened": (
        "public class Opened { public final int a; public Opened(int a) { this.a = a; } }",
        "public class Opened { public int a; public Opened() {} }",
    ),
    "Generic": ("public class Generic { final int a; Generic(int a) { this.a = a; } }",) * 2,
    "Child": ("public class Child extends Base { public int b; public Child() {} }",) * 2,
    "Child2": ("public class Child2 extends Base { public int c; public Child2() {} }",) * 2,
    "ChildAdded": (
        "public class ChildAdded extends Base { public int b; public ChildAdded() {} }",
        "public class ChildAdded extends Base { public int b, c; public ChildAdded() {} }",
    ),
    "Gone": ("public class Gone extends Base { public int b; public Gone() {} }", ""),
    "GoneGeneric": (
        "public class GoneGeneric { final int a; GoneGeneric(int a) { this.a = a; } }",
        "",
    ),
    "Moved": ("public class Moved { public int a; public Moved() {} }", ""),
    "MovedTo": ("", "public class MovedTo { public int a; public MovedTo() {} }"),
    "MovedEnum": ("public enum MovedEnum { A, B }", ""),
    "MovedEnumTo": ("", "public enum MovedEnumTo { A, B }"),
    "Stayed": ("public class Stayed { public int a; public Stayed() {} }",) * 2,
    "KeySame": (_key("KeySame", "a"),) * 2,
    "KeyAdded": (_key("KeyAdded", "a"), _key("KeyAdded", "a, b")),
    "KeyMoved": (_key("KeyMoved", "a"), ""),
    "KeyMovedTo": ("", _key("KeyMovedTo", "a")),
}

_SCALARS = ("INT", "LONG", "STRING", "DOUBLE", "BIG_DEC", "INSTANT", "LOCAL_DATE_TIME", "SQL_DATE")
_EVOLVED = ("INT", "@evolved.Added", "@evolved.Retyped", "@evolved.More")
_SQL = (
    ("BIGINT", "BIGINT"),
    ("INT", "BIGINT"),
    ("STRING", "VARCHAR(10)"),
    ("DECIMAL(10, 2)", "DECIMAL(10, 2)"),
    ("DECIMAL(10, 2)", "DECIMAL(12, 2)"),
    ("DECIMAL(10, 2)", "DECIMAL(10, 3)"),
    ("TIMESTAMP(3)", "TIMESTAMP(6)"),
    ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"),
    ("ARRAY<INT>", "ARRAY<INT>"),
    ("ARRAY<INT>", "ARRAY<BIGINT>"),
    ("ARRAY<INT>", "ARRAY<INT NOT NULL>"),
    ("ARRAY<DECIMAL(10, 2)>", "ARRAY<DECIMAL(12, 2)>"),
    ("MAP<INT, STRING>", "MAP<INT, STRING>"),
    ("MAP<INT, STRING>", "MAP<INT, BIGINT>"),
    ("MAP<INT, STRING>", "MAP<BIGINT, STRING>"),
    ("MULTISET<INT>", "MULTISET<INT>"),
    ("MULTISET<INT>", "MULTISET<BIGINT>"),
    ("MULTISET<INT>", "MAP<INT, INT>"),
    ("ROW<a INT, b STRING>", "ROW<a INT, b STRING>"),
    ("ROW<a INT, b STRING>", "ROW<a INT, c STRING>"),
    ("ROW<a INT, b STRING>", "ROW<a INT>"),
    ("ROW<a INT>", "ROW<a INT, b STRING>"),
    ("ROW<a INT, b STRING>", "ROW<b STRING, a INT>"),
    ("ROW<a INT>", "ROW<a INT NOT NULL>"),
    ("ROW<a INT NOT NULL>", "ROW<a INT>"),
    ("ROW<a VARCHAR(5)>", "ROW<a VARCHAR(6)>"),
    ("ROW<a VARCHAR(5)>", "ROW<a STRING>"),
    ("ROW<a ROW<b INT>>", "ROW<a ROW<b INT>>"),
    ("ROW<a ROW<b INT>>", "ROW<a ROW<c INT>>"),
    ("ROW<a ROW<b INT>>", "ROW<a ROW<b BIGINT>>"),
    ("ROW<a DATE>", "ROW<a INT>"),
)


def pairs() -> list[tuple[str, str]]:
    """Return the types of each pair, old and new."""
    asked = [(f"@evolved.{name}",) * 2 for name in (*POJOS, *ENUMS)]
    asked += [(f"@evolved.{name}",) * 2 for name in ("Closed", "Opened", "Generic")]
    asked += [
        ("@evolved.Moved", "@evolved.MovedTo"),
        ("@evolved.MovedEnum", "@evolved.MovedEnumTo"),
        ("@evolved.Left", "@evolved.Stayed"),
        ("@evolved.Equal", "@evolved.Same"),
        ("@evolved.Same", "LONG"),
        ("rowtime", "rowtime"),
        ("rowtime", "sql:ROW<a TIMESTAMP(3)>"),
        ("sql:ROW<a TIMESTAMP(3)>", "rowtime"),
        ("sql:ROW<a INT 'x'>", "sql:ROW<a INT>"),
        ("sql:ROW<a ROW<b INT 'x'>>", "sql:ROW<a ROW<b INT>>"),
    ]
    base = "pojo:evolved.Base"
    for registered in (
        ("", "+evolved.Child"),
        ("+evolved.Child", ""),
        ("+evolved.Child", "+evolved.Child"),
        ("+evolved.Child+evolved.Child2", "+evolved.Child2+evolved.Child"),
        ("+evolved.ChildAdded", "+evolved.ChildAdded"),
        ("+evolved.Gone", ""),
    ):
        asked.append((base + registered[0], base + registered[1]))
    generic = "kryo:evolved.Generic"
    for registered in (
        ("", ""),
        ("", "+evolved.Same"),
        ("+evolved.Same", ""),
        ("+evolved.Same+evolved.Left", "+evolved.Left+evolved.Same"),
        ("+evolved.Same", "+evolved.Same+evolved.Left"),
        ("+evolved.Same", "+evolved.Left+evolved.Same"),
        ("+evolved.GoneGeneric", ""),
    ):
        asked.append((generic + registered[0], generic + registered[1]))
    asked.append((generic, "kryo:evolved.Same"))
    asked.append(("kryo:evolved.Same", "@evolved.Same"))
    asked += [(scalar, scalar) for scalar in _SCALARS]
    asked += [("INT", "LONG"), ("LONG", "STRING"), ("DOUBLE", "LONG"), ("SQL_DATE", "LOCAL_DATE")]
    for part in _EVOLVED:
        for made in (
            *(
                "TUPLE(STRING;{})",
                "ROW(STRING;{})",
                "LIST({})",
                "MAP(STRING;{})",
                "MAP({};STRING)",
            ),
            *("EITHER(STRING;{})", "ARRAY({})", "NULLABLE({})", "TTL({})"),
        ):
            if part == "@evolved.More" and made.startswith(("ARRAY", "MAP({}")):
                continue
            asked.append((made.format(part),) * 2)
    asked += [
        ("TUPLE(INT;LONG)", "TUPLE(INT;INT)"),
        ("TUPLE(INT;LONG)", "TUPLE(INT)"),
        ("TUPLE(INT)", "TUPLE(INT;LONG)"),
        ("TUPLE(INT;LONG)", "ROW(INT;LONG)"),
        ("TUPLE(INT;LONG)", "@evolved.Same"),
        ("ROW(INT;LONG)", "ROW(INT;STRING)"),
        ("ROW(INT)", "ROW(INT;LONG)"),
        ("ROW(INT;LONG)", "ROW(INT)"),
        ("ROW(INT)", "ROW_WITHOUT_KIND(INT)"),
        ("ROW_WITHOUT_KIND(INT)", "ROW(INT)"),
        ("LIST(INT)", "LIST(LONG)"),
        ("LIST(INT)", "INT"),
        ("MAP(INT;INT)", "MAP(LONG;INT)"),
        ("ARRAY(STRING)", "ARRAY(@evolved.Same)"),
        ("NULLABLE(INT)", "PADDED(INT)"),
        ("PADDED(INT)", "NULLABLE(INT)"),
        ("PADDED(INT)", "PADDED(LONG)"),
        ("NULLABLE(INT)", "INT"),
        ("INT", "NULLABLE(INT)"),
        ("INT", "TTL(INT)"),
        ("TTL(INT)", "INT"),
        ("LIST(MAP(STRING;TUPLE(INT;@evolved.Added)))",) * 2,
        ("LIST(MAP(STRING;TUPLE(INT;@evolved.More)))",) * 2,
        ("TUPLE(@evolved.Added;@evolved.More)",) * 2,
    ]
    return asked + [(f"sql:{old}", f"sql:{new}") for old, new in _SQL]


def compile_classes(folder: Path, jar: str, side: int) -> None:
    """Compile the classes of the old job, side 0, or of the new one into a folder."""
    sources = {name: made[side] for name, made in SOURCES.items()}
    for name, fields in POJOS.items():
        sources[name] = f"public class {name} {{ {fields[side]} public {name}() {{}} }}"
    for name, constants in ENUMS.items():
        sources[name] = f"public enum {name} {{ {constants[side]} }}"
    (folder / "evolved").mkdir(parents=True)
    files = []
    for name, source in sources.items():
        if source:
            files.append(folder / "evolved" / f"{name}.java")
            files[-1].write_text(f"package evolved; {source}\n")
    subprocess.run(["javac", "-cp", jar, "-d", str(folder), *map(str, files)], check=True)


def verdicts(jar: Path) -> list[dict[str, str]]:
    """Return the snapshots of each pair, and what the Flink beside a jar says of them."""
    with TemporaryDirectory() as work:
        folders = [Path(work, str(side)) for side in (0, 1)]
        for side, folder in enumerate(folders):
            compile_classes(folder, str(jar), side)
        asked = [(f"{old} -> {new}" if old != new else old, old, new) for old, new in pairs()]
        text = "".join("\t".join(line) + "\n" for line in asked)
        source = JAVA_FOLDER / "Verdicts.java"
        run = ["java", "-cp", flink_class_path(jar), str(source), *map(str, folders)]
        answer = subprocess.run(run, input=text, capture_output=True, text=True)
        if answer.returncode:
            raise RuntimeError(answer.stderr)
    names = ("name", "old", "new", "verdict")
    return [dict(zip(names, line.split("\t"))) for line in answer.stdout.splitlines()]
