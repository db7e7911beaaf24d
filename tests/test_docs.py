"""The examples in docstrings and in the README are true, and what the documents promise holds."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re
import shlex
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import keygroups
from keygroups.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCUMENTS = [
    README,
    ROOT / "tests" / "README.md",
    ROOT / "tests" / "benchmarks" / "README.md",
    ROOT / ".github" / "CONTRIBUTING.md",
    ROOT / ".github" / "SECURITY.md",
    ROOT / "keygroups" / "savepoint" / "FORMAT.md",
]
MODULES = sorted(info.name for info in pkgutil.walk_packages(keygroups.__path__, "keygroups."))
HAS_ARROW = importlib.util.find_spec("pyarrow") is not None
CORE = [
    name
    for name in MODULES
    if not name.startswith("keygroups.spark") and (HAS_ARROW or "arrays" not in name)
]
SPARK = [name for name in MODULES if name.startswith("keygroups.spark")]
PUBLIC_SPARK = [name for name in SPARK if "._" not in name]


def run_doctests(module: ModuleType, **extra: object) -> int:
    result = doctest.testmod(module, extraglobs=extra)
    assert result.failed == 0
    return result.attempted


@pytest.mark.parametrize("name", CORE)
def test_docstrings_of_the_core(name: str) -> None:
    run_doctests(importlib.import_module(name))


def test_core_has_doctests() -> None:
    finder = doctest.DocTestFinder()
    tests = [test for name in CORE for test in finder.find(importlib.import_module(name))]
    assert sum(len(test.examples) for test in tests) > 200


@pytest.mark.parametrize("name", SPARK)
def test_docstrings_of_the_adapter(name: str, spark: SparkSession) -> None:
    savepoint = ROOT / "examples" / "data" / "savepoint"
    run_doctests(importlib.import_module(name), spark=spark, savepoint=savepoint)


@pytest.mark.parametrize("name", [*CORE, *PUBLIC_SPARK])
def test_public_functions_have_a_doctest(name: str) -> None:
    """Each public function and class shows a real value, but for the exceptions."""
    if name in PUBLIC_SPARK:
        pytest.importorskip("pyspark")
    module = importlib.import_module(name)
    public = set(keygroups.__all__) if name in CORE else set(getattr(module, "__all__", ()))
    for attribute in sorted(public & vars(module).keys()):
        value = getattr(module, attribute)
        own = getattr(value, "__module__", None) == name
        if not own or not callable(value) or attribute in ("KeyTrace", "ColumnOrName", "Key"):
            continue
        if isinstance(value, type) and issubclass(value, Exception):
            continue
        assert ">>>" in (value.__doc__ or ""), f"{name}.{attribute} has no doctest"


def test_help_leads_to_every_public_module() -> None:
    """The docstring of the package has a line for each: its name, then what it is for."""
    public = {info.name for info in pkgutil.iter_modules(keygroups.__path__)}
    listed = re.findall(r"^    (\w+)  +\S", keygroups.__doc__ or "", re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == {name for name in public if not name.startswith("_")}
    assert "spark.functions" in (keygroups.__doc__ or "")


def test_readme(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each section runs alone, in a namespace of its own."""
    monkeypatch.chdir(ROOT)  # it reads a file of the examples
    text = re.sub(r"^```.*", "", README.read_text("utf-8"), flags=re.MULTILINE)  # ends an output
    attempted = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE):
        name = section.partition("\n")[0]
        test = doctest.DocTestParser().get_doctest(section, {}, name, str(README), 0)
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert result.failed == 0, name
        attempted.append(result.attempted)
    assert sum(attempted) >= 50
    assert sum(map(bool, attempted)) >= 8


def test_commands_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"^    \$ keygroups (.+)\n((?:    .+\n)+)", README.read_text("utf-8"), re.M)
    assert shown
    for arguments, output in shown:
        assert main(shlex.split(arguments)) == 0
        assert capsys.readouterr().out == dedent(output)


def test_readme_is_short() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 290
    assert max(map(len, lines)) <= 100


def anchor(heading: str) -> str:
    """Return the fragment that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links(path: Path) -> None:
    """Links lead to headings of the document and to files beside it."""
    text = path.read_text(encoding="utf-8")
    anchors = {anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif not target.startswith("https://"):
            assert (path.parent / target).exists(), target


def test_first_screen_has_installation_and_map() -> None:
    first_screen = README.read_text(encoding="utf-8").splitlines()[:25]
    assert "    pip install keygroups" in first_screen
    assert len([line for line in first_screen if re.match(r"- .*\]\(.+\)", line)]) == 5


def test_newest_change_is_of_this_version() -> None:
    changes = README.read_text(encoding="utf-8").partition("\n## Changes\n")[2]
    assert re.findall(r"^### (.+)$", changes, re.MULTILINE)[0] == keygroups.__version__


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
def test_versions_of_lint(tool: str) -> None:
    """The hooks before a commit have the versions of CI."""
    pins = re.compile(rf"\b{tool}==([\d.]+)")
    [wanted] = set(pins.findall((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(pins.findall(hooks)) == {wanted}
