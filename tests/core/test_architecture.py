"""Which module may import which, read from their source: data flows one way."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from support.source_trees import tree_of

import keygroups

ROOT = Path(keygroups.__file__).parent


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}
CORE = [name for name in FILES if not name.startswith("keygroups.spark")]
SPARK = [name for name in FILES if name.startswith("keygroups.spark")]
# The checks of arguments, and the words of their errors, which every public door has.
OF_EVERY_DOOR = "keygroups._checks"
# The other private names of the core that the adapter imports: each is here, and each is in use.
REACH_OF_THE_ADAPTER = {
    "keygroups._values.checks": {"BYTES"},
    "keygroups.reports._skew": {"SkewQuestion"},
    "keygroups.savepoint._columns.row_shapes": {"StateColumns"},
    "keygroups.savepoint._files.files": {"absolute_path", "path_in_metadata"},
    "keygroups.savepoint._jobs.cluster_editors": {"ClusterEditor", "RowsEditor"},
    "keygroups.savepoint._jobs.file_jobs": {"FilesJob"},
    "keygroups.savepoint._jobs.parted_job": {"PartedJob"},
    "keygroups.savepoint._jobs.questions": {"difference_job", "key_size_job"},
    "keygroups.savepoint._jobs.row_jobs": {"wide_rows_job", "wide_shapes"},
    "keygroups.savepoint._jobs.state_query": {"StateQuery", "parse_key_groups"},
    "keygroups.savepoint._savepoint": {"savepoint_of", "summarized", "verified"},
    "keygroups.savepoint._state.writing.new_states": {"NewState"},
}
# Modules of the adapter that import nothing of PySpark, and why they are there all the same.
FREE_OF_SPARK = {
    "keygroups.spark._columns.murmur": "arithmetic on columns of a backend that is passed in",
    "keygroups.spark._group_by.map_view": "what Spark's own state makes of a map",
    "keygroups.spark._group_by.pages": "pages of Spark's own map state: nobody else reads them",
    "keygroups.spark._group_by.retention": "what state of Spark's own is forgotten",
}
# Private modules whose files have the same name, and why.
SAME_FILES = {
    **dict.fromkeys(("cep", "kryo", "rows", "streaming"), "serializers, and their values"),
    "sql": "values, and the reader of their columns",
    "compounds": "serializers, and the readers of their columns",
    "_savepoint": "a savepoint, and the command about it",
    "_skew": "the keys of arrays, and the report about them",
}
# The names of Spark's types that mean the same whatever a session sets; "timestamp" does not.
SAFE_TYPES = {"bigint", "binary", "date", "double", "float", "int", "string"}
# Variables that hold a DataType or a type of Arrow where they are cast to.
TYPE_VARIABLES = {"of", "spark_type", "value_type"}
TAKE_TYPES = {
    *("applyInArrow", "applyInPandas", "arrow_udf", "createDataFrame", "mapInArrow", "udf"),
    *("mapInPandas", "map_in_arrow", "nth", "pandas_udf", "schema"),
}
READ_DDL = {"_parse_datatype_string", "from_csv", "from_json", "from_xml", "fromDDL"}
# Both count the texts of programs too; one of these is run where there are no tests to import.
MOST_PRIVATE_IMPORTS_OF_TESTS = 175
PROGRAMS = {"killed_writers.py"}
FILLED = {"PlanNode", "Plan", "JavaObject", "_ClassDescription"}  # while a text or stream is read


def tree(module: str) -> ast.Module:
    return tree_of(FILES[module])


@cache
def imported(module: str) -> tuple[str, ...]:
    """Return the imports anywhere in a module: dotted names, of modules or names in them."""
    return tuple(_imported(module))


def _imported(module: str) -> Iterator[str]:
    package = module if FILES[module].stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                source = importlib.util.resolve_name("." * node.level + source, package)
            yield from (f"{source}.{alias.name}" for alias in node.names)


def module_of(name: str) -> str:
    """Return the module of ours that an imported name is, or is in."""
    return name if name in FILES else name.rpartition(".")[0]


def ours(module: str) -> set[str]:
    return {module_of(name) for name in imported(module) if name.split(".")[0] == "keygroups"}


def test_every_import_is_of_a_module_there_is() -> None:
    assert len(CORE) > 10
    assert len(SPARK) > 10
    assert set().union(*map(ours, FILES)) <= FILES.keys()


def test_the_core_stands_alone() -> None:
    for module in CORE:
        assert not ours(module) & set(SPARK), module
        assert not {name.split(".")[0] for name in imported(module)} & {"py4j", "pyspark"}, module


def test_the_adapter_reaches_for_what_is_listed() -> None:
    """Of what is private in the core it imports the names above: no other, and each of them."""
    private = {
        name
        for module in SPARK
        for name in imported(module)
        if module_of(name) in CORE and any(step.startswith("_") for step in name.split("."))
        if module_of(name) != OF_EVERY_DOOR
    }
    listed = {f"{home}.{name}" for home, names in REACH_OF_THE_ADAPTER.items() for name in names}
    assert private == listed


def test_what_needs_no_spark_is_in_the_core() -> None:
    """But for what is listed, with its reason; a file of a package with nothing in it aside."""
    free = {
        module
        for module in SPARK
        if not any(name.split(".")[0] == "pyspark" for name in imported(module))
        and FILES[module].stem != "__init__"
    }
    assert free == FREE_OF_SPARK.keys()


def test_no_type_of_spark_is_read_from_text() -> None:
    """A setting may change what the name of a type means."""
    texts = [text for module in SPARK for text in types_as_text(tree(module))]
    assert texts == []
    assert [*types_as_text(ast.parse("c.cast('int').cast(T.LongType()).cast(spark_type)"))] == []
    for line in (
        "c.cast('timestamp')",
        "c.cast(f'array<{name}>')",
        "c.cast(kind.simpleString())",
        "c.cast(text_of(kind))",
        "c.cast(name)",
        "c.cast('decimal(' + digits + ')')",
        "spark.createDataFrame(rows, 't timestamp')",
        "F.udf(call, returnType='timestamp')",
        "F.from_json(c, kind)",
    ):
        assert [*types_as_text(ast.parse(line))] == [line]


def types_as_text(module: ast.Module) -> Iterator[str]:
    """Yield the calls that get a type of Spark as text which may mean another."""
    for call in ast.walk(module):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if name in READ_DDL:
            yield ast.unparse(call)
        elif name == "cast" and isinstance(call.func, ast.Attribute):
            if not all(map(is_type, arguments)):
                yield ast.unparse(call)
        elif name in TAKE_TYPES and any(map(is_text, arguments)):
            yield ast.unparse(call)


@cache
def makers_of_types() -> set[str]:
    """Return the names of the adapter's functions that return a type and not its text."""
    return {
        node.name
        for module in SPARK
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef)
        and node.returns is not None
        and ast.unparse(node.returns).startswith("T.")
    }


def is_text(node: ast.expr) -> bool:
    is_str = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_str or isinstance(node, (ast.JoinedStr, ast.BinOp))


def is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in SAFE_TYPES
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        return called.startswith(("T.", "pa.")) or called in makers_of_types()
    return isinstance(node, ast.Name) and (node.id in TYPE_VARIABLES or node.id.isupper())


def test_no_circle() -> None:
    """Nor one of imports in functions or for types only. Raises CycleError, which names it."""
    order = list(TopologicalSorter({module: ours(module) for module in FILES}).static_order())
    assert set(order) == FILES.keys()


def test_no_file_hides_a_name_of_its_package() -> None:
    """Importing `package/name.py` sets `package.name`, unless that is done and `name` is in it."""
    for package, path in FILES.items():
        if path.stem == "__init__":
            files = {file.stem for file in path.parent.iterdir()}
            names = [name.split(".") for name in imported(package) if name not in FILES]
            used = {name[-1] for name in names if name[-1] not in name[:-1]}
            for node in tree(package).body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    used.add(node.name)
                elif isinstance(node, ast.Assign):
                    used.update(name.id for name in node.targets if isinstance(name, ast.Name))
            assert not used & files, package


def test_a_name_is_that_of_one_class() -> None:
    """Or of one type, such as that of a function; what is private to its module too."""
    homes: dict[str, list[str]] = {}
    for module in FILES:
        for node in tree(module).body:
            names = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
                names = [ast.unparse(name) for name in node.targets]
            for name in names:
                if re.fullmatch(r"_?([A-Z][a-z0-9]+)+", name):
                    homes.setdefault(name, []).append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_a_file_has_a_name_of_its_own() -> None:
    """What is private of the package: the public doors are named by their subject."""
    files = [path.stem for module, path in FILES.items() if "._" in module]
    assert {name for name in files if files.count(name) > 1} == {"__init__", *SAME_FILES}


def test_no_private_name_is_there_for_nothing() -> None:
    """Those of a tuple aside, of which some may be for their places."""
    unused = []
    for module in FILES:
        bound = [
            target.id if isinstance(target, ast.Name) else ""
            for node in tree(module).body
            if isinstance(node, (ast.Assign, ast.AnnAssign))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        ]
        kinds = (ast.ClassDef, ast.FunctionDef)
        bound += [node.name for node in tree(module).body if isinstance(node, kinds)]
        if private := {name for name in bound if re.match("_[^_]", name)}:
            nodes = ast.walk(tree(module))
            loads = (node for node in nodes if isinstance(node, ast.Name))
            used = {node.id for node in loads if isinstance(node.ctx, ast.Load)}
            unused += [f"{module}.{name}" for name in private - used]
    assert unused == []


@pytest.mark.parametrize("module", [name for name in FILES if "._" not in name])
def test_a_module_shows_what_it_promises(module: str) -> None:
    if module in SPARK:
        pytest.importorskip("pyspark")
    if module == "keygroups.arrays":
        pytest.importorskip("pyarrow")
    loaded = importlib.import_module(module)
    assert sorted(dir(loaded)) == sorted([*loaded.__all__, *kept_by_subject(module)])


def kept_by_subject(package: str) -> Iterator[str]:
    """Yield the names that a package has of its public modules, `X as X`, and these modules."""
    for node in tree(package).body:
        if isinstance(node, ast.ImportFrom):
            kept = [alias.name for alias in node.names if alias.name == alias.asname]
            yield from kept
            if kept and f"{node.module}".startswith(f"{package}."):
                yield f"{node.module}".removeprefix(f"{package}.")


def test_records_are_frozen() -> None:
    pytest.importorskip("pyarrow")  # some of the modules import it
    records = {
        cls
        for module in CORE
        for cls in vars(importlib.import_module(module)).values()
        if isinstance(cls, type) and is_dataclass(cls) and cls.__module__ == module
    }
    assert len(records) > 50
    for record in records:
        if record.__name__ not in FILLED:
            with pytest.raises(FrozenInstanceError):
                setattr(object.__new__(record), fields(record)[0].name, None)


def test_tests_import_no_tests() -> None:
    for path in Path(__file__).parents[1].rglob("*.py"):
        text = path.read_text("utf-8")
        if not re.search(r"\b(?:from|import)\b.*\btest_", text):  # most need not be parsed
            continue
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not [name for name in names if name.startswith("test_")], path


def private_imports() -> Iterator[tuple[Path, set[str]]]:
    """Yield the imports of private names in tests: each its file, and the private modules."""
    statement = re.compile(r"^ *from (keygroups[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
    for path in Path(__file__).parents[1].rglob("*.py"):
        for source, imports in statement.findall(path.read_text("utf-8")):
            names = re.findall(
                r"(\w+)(?: as \w+)?(?:,|\)|$)", re.sub(r" *#.*|\(\s*|\n\s*", "", imports)
            )
            dotted = [f"{source}.{name}" for name in names]
            if private := {module_of(name) for name in dotted if "._" in name}:
                yield path, private


def test_tests_wait_for_no_query_for_ever() -> None:
    """A query of Spark may run batches without rows until it is stopped."""
    tests = Path(__file__).parents[1]
    for path in (*tests.glob("spark/*.py"), *tests.glob("support/**/*.py")):
        assert ".awaitTermination()" not in path.read_text("utf-8"), path


def test_a_private_module_is_followed_in_one_file_of_tests() -> None:
    """What several files take of it, they take from `support/inside`."""
    homes: dict[str, set[str]] = {}
    for path, modules in private_imports():
        for module in modules if path.name not in PROGRAMS else ():
            homes.setdefault(module, set()).add(path.name)
    assert {module: files for module, files in homes.items() if len(files) > 1} == {}


def test_tests_import_few_private_names() -> None:
    """Fewer is right, and then the bound here falls; more is a test without a public door."""
    assert sum(1 for _ in private_imports()) <= MOST_PRIVATE_IMPORTS_OF_TESTS


def test_import_needs_neither_spark_nor_numpy() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = sys.modules['numpy'] = None\n"
        "import keygroups; print(keygroups.assign_to_key_group('A', 128))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "104\n"
    code = "import sys, keygroups; print({'pyspark', 'numpy', 'pyarrow'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


@pytest.mark.parametrize("missing", ["numpy", "pyarrow"])
def test_arrays_name_their_extra(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import keygroups.arrays"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "pip install 'keygroups[arrays]'" in run.stderr.splitlines()[-1]


def test_spark_adapter_names_its_extra() -> None:
    code = "import sys; sys.modules['pyspark'] = None; import keygroups.spark"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "pip install 'keygroups[spark]'" in run.stderr
