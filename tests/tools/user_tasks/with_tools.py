"""Tasks of people who write tests and tools, or have another machine than its authors."""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import mmh3

from user_tasks.asking import CHECKOUT, CHECKPOINT, NATIVE, SAVEPOINT, Output, Step, tasks, work
from user_tasks.truth import entries, java_hash, key_group, loads, murmur_hash, subtask

TASKS, task = tasks()


@task(
    "Where does a key go, and why?",
    "$ keygroups trace user-89019 --max-parallelism 128 --parallelism 3",
)
def where_a_key_goes(trace: Output) -> None:
    (entry,) = entries(SAVEPOINT, "by-string", "count", "user-89019")
    assert entry["key_group"] == key_group("user-89019", 128)
    assert f"key group    {entry['key_group']} = " in trace.out
    assert f"subtask      {entry['subtask']} = " in trace.out


@task(
    "What moves from 3 to 4, and which parallelism is better?",
    "$ keygroups plan 128 3 4",
    """
import pyarrow.parquet as pq
from keygroups import arrays

flights = pq.read_table("examples/data/nycflights13.parquet")
load = arrays.key_group_load(flights["dest"], 128)
for recommended in load.recommend(2, 8):
    print(recommended)
""",
)
def what_moves(plan: Output, recommended: Output) -> None:
    moves = sum(group * 3 // 128 != group * 4 // 128 for group in range(128))
    assert f"parallelism 3 -> 4: {moves} move ({moves / 128:.1%}), {128 - moves} stay" in plan.out
    heaviest = {parallelism: max(loads("dest", 128, parallelism)) for parallelism in range(2, 9)}
    best = min(heaviest, key=lambda parallelism: (heaviest[parallelism], parallelism))
    says = f"parallelism {best}: the heaviest subtask has {heaviest[best]:,}, "
    assert recommended.out.startswith(says)
    assert heaviest[4] < heaviest[3]
    assert f"parallelism 4: the heaviest subtask has {heaviest[4]:,}, " in recommended.out


@task(
    "Export a state as Parquet",
    "$ keygroups savepoint NATIVE --operator by-string --state byCity --export WORK/c.parquet",
    """
from keygroups.savepoint import read_savepoint

table = read_savepoint("NATIVE").operator("by-string").to_arrow("byCity")
print(table.num_rows, table["value"].to_numpy().sum())
""",
)
def export(_: Output, arrow: Output) -> None:
    import pyarrow.parquet as pq

    columns = ["key_group", "subtask", "key", "user_key", "value"]
    rows = pq.read_table(work() / "c.parquet", columns=columns).to_pylist()
    true = [
        {name: entry[name] for name in columns} | {"value": entry["value"]["long"]}
        for entry in entries(NATIVE, "by-string", "byCity")
    ]
    assert sorted(rows, key=repr) == sorted(true, key=repr)
    assert arrow.out.split() == [str(len(true)), str(sum(row["value"] for row in true))]


@task(
    "Look at a savepoint in a notebook",
    """
from IPython.core.interactiveshell import InteractiveShell
from keygroups.savepoint import read_savepoint

formatted = InteractiveShell.instance().display_formatter.format
savepoint = read_savepoint("examples/data/savepoint")
by_string = savepoint.operator("by-string")
for shown in (savepoint, savepoint.operators, by_string, by_string.states, by_string.key_sizes(),
              by_string.get("user-89019"), by_string.entries(["count"]), savepoint.summary(),
              savepoint.compare(read_savepoint("NEW"))):
    print("<table" in formatted(shown)[0].get("text/html", ""))
""",
    needs=lambda: "" if find_spec("IPython") else "there is no IPython",
)
def notebook(printed: Output) -> None:
    assert {*printed.out.split()} == {"True"}


@task(
    "In a container that has mmh3 alone",
    "$ BARE trace user-89019 -m 128 -p 3",
    "$ BARE savepoint SAVEPOINT --operator by-string --state count --key user-89019",
    "$ BARE savepoint SAVEPOINT --operator by-string --state count --export - | wc -l",
    Step("$ BARE savepoint examples/data/savepoint --full", fails=True),
)
def mmh3_alone(traced: Output, shown: Output, exported: Output, refused: Output) -> None:
    (entry,) = entries(SAVEPOINT, "by-string", "count", "user-89019")
    assert f"subtask      {entry['subtask']} = " in traced.out
    assert re.search(rf"^count  {entry['value']['long']}$", shown.out, re.MULTILINE)
    counts = [*entries(SAVEPOINT, "by-string", "count")]
    assert exported.out.split() == [str(len(counts))]
    (line,) = refused.err.splitlines()
    assert "pip install 'keygroups[arrays]'" in line


def bare_command() -> str:
    """Return the command in a Python that has mmh3 and the checkout, and no other package."""
    packages = work() / "bare"
    packages.mkdir()
    (package,) = {Path(mmh3.__file__).parent}
    if package.name == "mmh3":
        shutil.copytree(package, packages / "mmh3")
    else:
        shutil.copy(mmh3.__file__, packages)
    return f"env PYTHONPATH={packages}:{CHECKOUT} {sys.executable} -S -m keygroups"


@task(
    "In a pipe, without a terminal",
    "$ printf 'user-1\\nuser-2\\n' | TERM=dumb keygroups trace - -m 128 -p 3 | sort | cat",
    "$ TERM=dumb keygroups savepoint examples/data/savepoint | head -1",
)
def pipe(traced: Output, headline: Output) -> None:
    lines = sorted(
        f"{subtask(key, 128, 3)}\t{key_group(key, 128)}\t{key}" for key in ("user-1", "user-2")
    )
    assert traced.out.splitlines() == lines
    assert headline.out.startswith("canonical savepoint 2, 3 operators")
    assert not traced.err + headline.err


TESTS = """
from hypothesis import given
from keygroups import assign_key_to_parallel_operator, testing
from keygroups.types import STRING

def test_my_key():
    testing.assert_subtask("user-89019", 2, max_parallelism=128, parallelism=3)

@given(testing.keys(STRING), testing.parallelisms())
def test_in_range(key, sizes):
    assert 0 <= assign_key_to_parallel_operator(key, *sizes) < sizes[1]
"""


@task(
    "In one's own tests, with pytest and Hypothesis",
    f"$ cat > WORK/test_mine.py <<'END'{TESTS}END",
    "$ VENV/bin/python -m pytest -q -p no:cacheprovider WORK/test_mine.py",
)
def own_tests(_: Output, ran: Output) -> None:
    assert "2 passed" in ran.out


@task(
    "A key class of one's own, in tests",
    """
from hypothesis import given, strategies as st
from keygroups import assign_key_to_parallel_operator, testing
from keygroups.types import LONG, OBJECTS_HASH, STRING

USER = OBJECTS_HASH(LONG, STRING)  # a record with Objects.hash(id, country)

@given(testing.keys(USER), testing.parallelisms())
def in_range(key, sizes):
    assert 0 <= assign_key_to_parallel_operator(key, *sizes, USER) < sizes[1]

in_range()
testing.assert_subtask((7, "CH"), OWN_SUBTASK, 128, 16, USER)
testing.assert_reaches_all([(n, "CH") for n in range(99)], 128, 4, USER)
print("fine")
""",
)
def own_key(printed: Output) -> None:
    assert printed.out == "fine\n"


def own_subtask() -> int:
    """Return the subtask, of 16, of an object with Objects.hash(7L, "CH")."""
    return murmur_hash((31 * (31 + 7) + java_hash("CH")) % 2**32) % 128 * 16 // 128


@task(
    "With mypy --strict",
    """$ cat > WORK/typed.py <<'END'
$ import keygroups
$ from keygroups.savepoint import Savepoint, read_savepoint
$ savepoint: Savepoint = read_savepoint("examples/data/savepoint")
$ subtask: int = keygroups.assign_key_to_parallel_operator("A", 128, 3)
$ END
$ MYPYPATH=CHECKOUT VENV/bin/python -m mypy --strict --cache-dir WORK/mypy WORK/typed.py""",
    needs=lambda: "" if find_spec("mypy") else "there is no mypy",
)
def typed(checked: Output) -> None:
    assert checked.out.startswith("Success")


@task(
    "In a pool of processes that are spawned",
    """
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from keygroups import assign_key_to_parallel_operator
from keygroups.types import STRING

if __name__ == "__main__":
    where = partial(assign_key_to_parallel_operator, max_parallelism=128, parallelism=3,
                    key_type=STRING)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        print(*pool.map(where, ["user-1", "user-2", "user-89019"]))
""",
)
def spawned(printed: Output) -> None:
    assert printed.out.split() == [
        f"{subtask(key, 128, 3)}" for key in ("user-1", "user-2", "user-89019")
    ]


@task(
    "As a wheel, for another machine",
    """$ mkdir WORK/package && cp -r README.md LICENSE pyproject.toml keygroups WORK/package
$ cd WORK/package && VENV/bin/python -m pip wheel -q --no-deps --wheel-dir WORK/dist .
$ VENV/bin/python -m zipfile -e WORK/dist/*.whl WORK/installed
$ cd WORK && PYTHONPATH=WORK/installed VENV/bin/python -c '
$ import keygroups
$ print(keygroups.__file__, keygroups.assign_to_key_group("A", 128))'""",
)
def wheel(printed: Output) -> None:
    assert printed.out.split() == [str(work() / "installed/keygroups/__init__.py"), "104"]
    assert (work() / "installed/keygroups/py.typed").exists()


@task(
    "Import it without Spark and NumPy",
    """
import sys
import keygroups, keygroups.savepoint, keygroups.cli
print(*sorted({"pyspark", "numpy", "pandas", "pyarrow", "fsspec"} & sys.modules.keys()))
""",
)
def imported(printed: Output) -> None:
    assert printed.out == "\n"


@task(
    "The API as HTML",
    "$ VENV/bin/python tests/tools/site_pages.py WORK/site",
    needs=lambda: (
        "" if find_spec("mkdocs") else "there is no MkDocs, which `.ci/run docs` installs"
    ),
)
def api_pages(_: Output) -> None:
    assert (work() / "site/index.html").exists()


@task(
    "A report as a page, narrow and wide, light and dark",
    "$ keygroups savepoint examples/data/savepoint --html WORK/report.html",
    """$ for width in 390 1280
$ do chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=2000 \\
$     --window-size=$width,900 --screenshot=WORK/$width.png file://WORK/report.html 2>WORK/log
$ file WORK/$width.png
$ done""",
    needs=lambda: "" if shutil.which("chromium") else "there is no Chromium",
)
def html_report(_: Output, pictures: Output) -> None:
    page = (work() / "report.html").read_text()
    assert "user-89019" in page
    assert "prefers-color-scheme" in page
    assert "width=device-width" in page
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)
    assert "390 x 900" in pictures.out
    assert "1280 x 900" in pictures.out


@task(
    "Complete the command in a shell",
    """$ keygroups completion bash > WORK/completion
$ source WORK/completion
$ COMP_WORDS=(keygroups savepoint --set) COMP_CWORD=2
$ $(complete -p keygroups | sed 's/.*-F \\([^ ]*\\).*/\\1/') keygroups --set savepoint
$ echo "${COMPREPLY[@]}" """,
    needs=lambda: "" if find_spec("shtab") else "there is no shtab, of keygroups[completion]",
)
def completion(completed: Output) -> None:
    assert "--set-max-parallelism" in completed.out


@task(
    "Other locales and encodings",
    """$ for locale in C fr_FR.UTF-8 zh_CN.GBK
$ do LC_ALL=$locale PYTHONIOENCODING=ascii keygroups trace Zürich -m 128 -p 3 | tail -1
$ done
$ PYTHONIOENCODING=gbk keygroups trace 漢 -m 128 -p 3 | tail -1""",
)
def locales(printed: Output) -> None:
    *cities, last = printed.out.splitlines()
    assert len(cities) == 3
    assert all(line.startswith(f"subtask      {subtask('Zürich', 128, 3)} = ") for line in cities)
    assert last.startswith(f"subtask      {subtask('漢', 128, 3)} = ")


@task(
    "Paths as Windows has them",
    Step("$ keygroups savepoint 'C:\\flink\\savepoint-1'", fails=True),
    """
from pathlib import PureWindowsPath
from keygroups.errors import SavepointError
from keygroups.savepoint import read_savepoint
try:
    read_savepoint(PureWindowsPath("C:/flink") / "savepoint-1")
except SavepointError as error:
    print(error)
""",
    "$ keygroups savepoint WORK/windows --moved 'C:\\flink\\shared=WORK/windows-shared' "
    "--operator by-string --state count --key user-18276",
)
def windows_paths(refused: Output, in_python: Output, shown: Output) -> None:
    assert len(refused.err.splitlines()) == 1
    assert r"C:\flink\savepoint-1" in refused.err
    assert r"C:\flink\savepoint-1" in in_python.out
    (entry,) = entries(CHECKPOINT, "by-string", "count", "user-18276")
    assert re.search(rf"^count  {entry['value']['long']}$", shown.out, re.MULTILINE)


def windows_checkpoint() -> None:
    """Copy a checkpoint as a job on Windows would have written it: file:/C:/flink/shared/..."""
    ((old, shared),) = CHECKPOINT.moved.items()
    shutil.copytree(CHECKPOINT.path, work() / "windows")
    shutil.copytree(shared, work() / "windows-shared")
    metadata = (CHECKPOINT.path / "_metadata").read_bytes()

    def renamed(found: re.Match[bytes]) -> bytes:
        path = b"file:/C:/flink/shared" + found[1]
        return len(path).to_bytes(2, "big") + path

    pattern = rb"(?s)..file:" + re.escape(old.encode()) + rb"(/[0-9a-f-]{36})"
    (work() / "windows/_metadata").write_bytes(re.sub(pattern, renamed, metadata))


@task(
    "What does --help say, of each command?",
    """$ for command in $(keygroups --help | sed -n 's/^    \\([a-z]*\\)\\( .*\\)*$/\\1/p')
$ do echo "=== $command"
$ keygroups $command --help
$ done""",
)
def helps(printed: Output) -> None:
    _, *texts = printed.out.split("=== ")
    assert len(texts) >= 18
    for text in texts:
        command = text.partition("\n")[0]
        lines = text.partition("examples:\n")[2].splitlines()
        assert len(lines) >= 2
        assert all(f"keygroups {command} " in line for line in lines)
