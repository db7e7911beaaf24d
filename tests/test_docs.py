"""The examples in docstrings, the README and the guide are true, as is what they promise."""

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
GUIDE = sorted((ROOT / "keygroups" / "guide").glob("*.md"))
DOCUMENTS = [
    README,
    *GUIDE,
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


def run_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the examples of a page, each section in a namespace of its own; return their number."""
    monkeypatch.chdir(ROOT)  # they read files of the examples
    text = re.sub(r"^```.*", "", path.read_text("utf-8"), flags=re.MULTILINE)  # ends an output
    attempted = 0
    for section in re.split(r"^## ", text, flags=re.MULTILINE):
        name = section.partition("\n")[0]
        test = doctest.DocTestParser().get_doctest(section, {}, name, str(path), 0)
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert result.failed == 0, name
        attempted += result.attempted
    return attempted


PAGES = [README, *GUIDE]
WITH_SPARK = [page for page in PAGES if "import SparkSession" in page.read_text("utf-8")]
WITH_EXAMPLES = [page for page in GUIDE if ">>> " in page.read_text("utf-8")]


@pytest.mark.parametrize("page", WITH_SPARK, ids=lambda page: page.name)
def test_pages_with_spark(
    page: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_page(page, monkeypatch) >= 10


@pytest.mark.parametrize(
    "page", [page for page in WITH_EXAMPLES if page not in WITH_SPARK], ids=lambda page: page.name
)
def test_pages(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_page(page, monkeypatch) >= 3


def test_commands_of_the_pages(capsys: pytest.CaptureFixture[str]) -> None:
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    shown = re.findall(r"^    \$ keygroups (.+)\n((?:    .+\n)+)", pages, re.MULTILINE)
    assert shown
    for arguments, output in shown:
        assert main(shlex.split(arguments)) == 0
        assert capsys.readouterr().out == dedent(output)


def test_every_command_of_the_pages_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    """Their subcommands and options are those of the command."""
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    for line in re.findall(r"(?:^    |`)keygroups ([a-z][^`\n]*)", pages, re.MULTILINE):
        command, *arguments = shlex.split(line, comments=True)
        assert main([command, "--help"]) == 0
        text = capsys.readouterr().out
        options = [argument for argument in arguments if re.match("--?[a-z]", argument)]
        assert [option for option in options if f"{option} " not in text] == [], line


def test_readme_is_short() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 200
    assert max(map(len, lines)) <= 100


def test_questions_of_the_readme() -> None:
    """Thirty questions lead to every page of the guide, but for words and changes."""
    text = README.read_text(encoding="utf-8")
    rows = re.findall(r"^\| .+ \| .+ \| (?:\[.+\]\[(\w)\]|`help\(.+\)`) \|$", text, re.MULTILINE)
    assert len(rows) >= 30
    targets = dict(re.findall(r"^\[(\w)\]: (\S+)$", text, re.MULTILINE))
    assert set(rows) - {""} == set(targets)
    pages = {f"keygroups/guide/{page.name}" for page in GUIDE}
    assert pages - set(targets.values()) == {
        "keygroups/guide/glossary.md",
        "keygroups/guide/what_changed.md",
    }


def test_calls_in_the_pages() -> None:
    """What they call, in a word between backquotes, there is in some public module."""
    public = [name for name in [*CORE, *PUBLIC_SPARK] if "._" not in name]
    modules = list(map(importlib.import_module, public))
    known = {"key_by"}  # PyFlink's
    for module in modules:
        known.update(dir(module))
        known.update(*(dir(value) for value in vars(module).values() if isinstance(value, type)))
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        called = re.findall(r"`(?:\w+\.)*([a-z]+_\w+)\([^`]*`", text)
        assert set(called) <= known, page.name


def anchor(heading: str) -> str:
    """Return the fragment that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.M)}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links(path: Path) -> None:
    """Links lead to headings of the document and to files beside it."""
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    targets += re.findall(r"^\[\w+\]: (\S+)$", text, re.MULTILINE)
    for target in targets:
        if not target.startswith("https://"):
            name, _, heading = target.partition("#")
            other = path.parent / name if name else path
            assert other.exists(), target
            assert not heading or heading in anchors(other), target


def test_first_screen_has_installation_and_picture() -> None:
    first_screen = "\n".join(README.read_text(encoding="utf-8").splitlines()[:25])
    assert "\n    pip install '.[spark]'\n" in first_screen
    assert "key_to_subtask.svg)" in first_screen


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
