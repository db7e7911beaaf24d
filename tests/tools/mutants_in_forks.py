"""A plugin of pytest that judges mutants in forks of one session, which has loaded all tests.

In a fork the functions that a mutant changes get their new code, and the tests that ran the
changed statement are run, the quickest first. What changes more than functions, or runs in an
import, is left to a process of its own; so is what survives here, as the processes that tests
start see nothing of it.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import signal
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import accumulate
from types import CodeType, FunctionType

import coverage
import mutants
import pytest
from mutants import Mutant
from source_edits import Edit

SECONDS = 30  # seconds that the tests of a mutant take together without it
FUNCTION = 0x03  # CO_OPTIMIZED and CO_NEWLOCALS, which neither a module nor a class has


def inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def own(code: CodeType) -> tuple[CodeType, int]:
    """Return a code object without the functions in it, and the number of these."""
    constants = (constant for constant in code.co_consts if not isinstance(constant, CodeType))
    return code.replace(co_consts=tuple(constants), co_linetable=b""), len(inner(code))


def changed_functions(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield functions that differ, and those around them, as they were and as they are.

    Raises ValueError where a module or a class differs.
    """
    differs = own(old) != own(new)
    pairs = [] if differs else zip(inner(old), inner(new))
    within = [found for pair in pairs for found in changed_functions(*pair)]
    if old.co_flags & FUNCTION == FUNCTION:
        if differs or within:
            yield old, new
    elif differs:
        raise ValueError(f"{old.co_name} is no function")
    yield from within


def functions_of_copy() -> dict[tuple[str, CodeType], list[FunctionType]]:
    """Return the functions of the copied core by their code; one in a function may be many."""
    functions = defaultdict(list)
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType):
            code = thing.__code__
            if code.co_filename.startswith(str(mutants.COPY / "keygroups")):
                functions[code.co_filename, code].append(thing)
    return functions


@cache
def tests_by_line(path: str) -> dict[int, list[str]]:
    reached = coverage.CoverageData(str(mutants.REACHED))
    reached.read()
    return reached.contexts_by_lineno(path)


def run_in_fork(items: list[pytest.Item], changes: list[tuple[FunctionType, CodeType]]) -> str:
    """Return the first test that fails with other code of functions, or nothing."""
    folder = tempfile.mkdtemp()  # a fork just ends, and removes nothing of it
    text, write_end = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (mutants.MEMORY, mutants.MEMORY))
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        try:
            for function, code in changes:
                function.__code__ = code
            for item, following in zip(items, [*items[1:], None]):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if item.session.testsfailed:
                    os.write(write_end, item.nodeid.encode())
                    break
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(text, encoding="utf-8") as file:
        failed = file.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # the processes that it started
    shutil.rmtree(folder, ignore_errors=True)
    return f"signal {-ended}" if ended else failed


def judge(
    mutant: Mutant,
    tests: dict[str, pytest.Item],
    functions: dict[tuple[str, CodeType], list[FunctionType]],
) -> str:
    """Return the sign by which tests noticed the mutant; nothing without, or if not for here."""
    path = str(mutants.COPY / mutant.path)
    old = (mutants.ROOT / mutant.path).read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        codes = [compile(text, path, "exec") for text in (old, mutant.edit.apply(old))]
    lines = range(mutant.edit.first, mutant.edit.last + 1)
    reached = {test for line in lines for test in tests_by_line(path).get(line, [])}
    changes = []
    with suppress(ValueError):
        for was, code in changed_functions(*codes):
            for function in functions.get((path, was), []):
                if len(code.co_freevars) == len(was.co_freevars):
                    changes.append((function, code))
    if "" in reached or not changes:
        return ""
    items = [item for name, item in tests.items() if name in reached]
    usual = mutants.usual_seconds()
    sums = accumulate(usual.get(item.nodeid, 0) for item in items)
    chosen = [item for item, seconds in zip(items, sums) if seconds < SECONDS] or items[:1]
    how = run_in_fork(chosen, changes)
    until = [item.nodeid for item in chosen].index(how) + 1 if how in tests else 0
    return "" if run_in_fork(chosen[:until], []) else how  # it fails in any case


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Judge the mutants that are asked for, instead of running all tests."""
    mutants.end_after(0)
    usual = mutants.usual_seconds()
    quickest = sorted(session.items, key=lambda item: usual.get(item.nodeid, 0))
    tests = {item.nodeid: item for item in quickest}
    functions = functions_of_copy()
    gc.freeze()
    for path, edit in json.loads(mutants.ASKED.read_text()):
        mutant = Mutant(path, Edit(*edit))
        if how := judge(mutant, tests, functions):
            mutants.note(mutant, how)
    return True
