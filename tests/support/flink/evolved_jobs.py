"""Jobs whose state real Flink restores by other types: does it, and what is in the state then?

The old job and the new one have the classes of `evolved_types.py`, each in a JVM of its own, which
runs `java/EvolvedJobs.java`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from support.flink.evolved_types import compile_classes, pairs
from support.flink.flink_oracle import flink_version
from support.flink.flink_restores import BACKENDS
from support.flink.flink_sql import FlinkSql

Answer = dict[str, Any]
TOGETHER = "all"
"""The uid of the operator that has the states of all changes but those that are alone."""
_KEYS_EACH = 3
_DAY = 24 * 3600 * 1000
_PARTS = ("INT", "@evolved.Added", "@evolved.Retyped", "@evolved.More", "@evolved.Moved")
_FATAL = (
    *("Fewer", "Gone", "Moved", "Other", "RemovedGeneric", "RemovedGone", "RenamedClass"),
    *("Closed", "Retyped", "OuterRetyped", "WithFewer"),
)
"""The classes for which Flink does not restore the operator at all."""
_OF_KRYO = ("Generic", "WithList", "WithList2")
"""Classes of which another Kryo reads values that are none, or nothing of the operator."""


class Kept(NamedTuple):
    """A state in the old job or in the new one; `kind` is that of StateDescriptor, a mode, TIMERS.

    Types are those of `evolved_types.py`, `ttl` is in milliseconds, and `namespace` is "window".
    """

    kind: str
    value: str = ""
    user_key: str | None = None
    ttl: int | None = None
    namespace: str | None = None

    def java(self, name: str) -> dict[str, Any]:
        """Return it as the Java side takes it."""
        described = {key: value for key, value in self._asdict().items() if value is not None}
        return {"name": name, **described}


class Change(NamedTuple):
    """A state under a key, STRING unless it is said, in the old job and in the new one."""

    name: str
    old: Kept
    new: Kept | None
    keys: tuple[str, str] = ("STRING", "STRING")
    is_alone: bool = False

    def of(self, side: int) -> tuple[str, Kept | None]:
        """Return its name and its state in one of the jobs."""
        return self.name, (self.old, self.new)[side]

    def operator(self, side: int) -> dict[str, Any]:
        """Return an operator that has it alone, of one of the jobs."""
        return operator(self.name, self.keys[side], [self.of(side)])


def operator(uid: str, key: str, states: Iterable[tuple[str, Kept | None]]) -> dict[str, Any]:
    """Return an operator as the Java side takes it."""
    described = [state.java(name) for name, state in states if state is not None]
    return {"uid": uid, "key": key, "states": described}


def changes() -> Iterator[Change]:
    """Yield each pair of types as a change of a value, and other changes of state."""
    for old, new in pairs():
        if "TTL(" not in old + new:
            name = old if old == new else f"{old} -> {new}"
            yield _change(name, Kept("VALUE", old), Kept("VALUE", new))
    for part in _PARTS:
        other = f"{part}To" if part.endswith("Moved") else part
        for kind in ("LIST", "REDUCING", "AGGREGATING"):
            yield _change(f"{kind} of {part}", Kept(kind, part), Kept(kind, other))
        olds, news = Kept("MAP", part, "STRING"), Kept("MAP", other, "STRING")
        yield _change(f"MAP to {part}", olds, news)
        if "." not in part or part.endswith("Moved"):
            yield _change(f"MAP of {part}", Kept("MAP", "INT", part), Kept("MAP", "INT", other))
    yield from (_change(name, *both) for name, both in _OTHERS.items())
    for name in ("INT", "@evolved.Stayed", "@evolved.Retyped", *_WITHOUT):
        yield Change(f"{name} is not registered", Kept("VALUE", name), None, is_alone=True)
    for mode, user_key in (("SPLIT_DISTRIBUTE", None), ("BROADCAST", "STRING")):
        for name in ("INT", "@evolved.Moved", "@evolved.Fewer"):
            listed = Kept(mode, name, user_key)
            yield Change(f"{mode} {name} is not registered", listed, None, is_alone=True)
    for name, both in _KEYS.items():
        count = Kept("VALUE", "LONG")
        yield Change(f"key {name}", count, count, both, is_alone=True)


def _change(name: str, old: Kept, new: Kept) -> Change:
    is_alone = any(f"evolved.{fatal}" in f"{old} {new}" for fatal in (*_FATAL, *_OF_KRYO))
    return Change(name, old, new, is_alone=is_alone)


_WITHOUT = (
    *("@evolved.Moved", "@evolved.MovedEnum", "@evolved.Fewer", "LIST(@evolved.Moved)"),
    *("kryo:evolved.GoneGeneric", "@evolved.RemovedGone"),
)
_LISTED = {
    f"{mode} {name}": (Kept(mode, old, user_key), Kept(other, new, user_key))
    for mode, user_key in (("SPLIT_DISTRIBUTE", None), ("UNION", None), ("BROADCAST", "STRING"))
    for name, old, new, other in (
        ("INT", "INT", "INT", mode),
        ("INT -> LONG", "INT", "LONG", mode),
        ("@evolved.Added", "@evolved.Added", "@evolved.Added", mode),
        ("is UNION", "INT", "INT", "UNION"),
    )
    if (mode, name) not in (("BROADCAST", "is UNION"), ("UNION", "is UNION"))
}
_OTHERS: dict[str, tuple[Kept, Kept]] = {
    "LIST INT -> LONG": (Kept("LIST", "INT"), Kept("LIST", "LONG")),
    "REDUCING INT -> LONG": (Kept("REDUCING", "INT"), Kept("REDUCING", "LONG")),
    "MAP to INT -> LONG": (Kept("MAP", "INT", "INT"), Kept("MAP", "LONG", "INT")),
    "MAP of INT -> LONG": (Kept("MAP", "INT", "INT"), Kept("MAP", "INT", "LONG")),
    "MAP of KeyAdded": (Kept("MAP", "INT", "@evolved.KeyAdded"),) * 2,
    "MAP of KeySame to Added": (Kept("MAP", "@evolved.Added", "@evolved.KeySame"),) * 2,
    "MAP of KeyAdded to Added": (Kept("MAP", "@evolved.Added", "@evolved.KeyAdded"),) * 2,
    "MAP of More": (Kept("MAP", "INT", "@evolved.More"),) * 2,
    "MAP of More to Added": (Kept("MAP", "@evolved.Added", "@evolved.More"),) * 2,
    "VALUE is LIST": (Kept("VALUE", "INT"), Kept("LIST", "INT")),
    "LIST is VALUE": (Kept("LIST", "INT"), Kept("VALUE", "LIST(INT)")),
    "MAP is VALUE": (Kept("MAP", "INT", "INT"), Kept("VALUE", "MAP(INT;INT)")),
    "VALUE is REDUCING": (Kept("VALUE", "INT"), Kept("REDUCING", "INT")),
    "REDUCING is AGGREGATING": (Kept("REDUCING", "INT"), Kept("AGGREGATING", "INT")),
    "VALUE gets a TTL": (Kept("VALUE", "INT"), Kept("VALUE", "INT", None, _DAY)),
    "VALUE loses its TTL": (Kept("VALUE", "INT", None, _DAY), Kept("VALUE", "INT")),
    "LIST gets a TTL": (Kept("LIST", "INT"), Kept("LIST", "INT", None, _DAY)),
    "LIST loses its TTL": (Kept("LIST", "INT", None, _DAY), Kept("LIST", "INT")),
    "MAP gets a TTL": (Kept("MAP", "INT", "INT"), Kept("MAP", "INT", "INT", _DAY)),
    "MAP loses its TTL": (Kept("MAP", "INT", "INT", _DAY), Kept("MAP", "INT", "INT")),
    "REDUCING gets a TTL": (Kept("REDUCING", "INT"), Kept("REDUCING", "INT", None, _DAY)),
    "VALUE keeps its TTL": (
        Kept("VALUE", "INT", None, _DAY),
        Kept("VALUE", "INT", None, 5 * _DAY),
    ),
    "Added keeps its TTL": (Kept("VALUE", "@evolved.Added", None, _DAY),) * 2,
    "LIST of Added keeps its TTL": (Kept("LIST", "@evolved.Added", None, _DAY),) * 2,
    "MAP to Added keeps its TTL": (Kept("MAP", "@evolved.Added", "INT", _DAY),) * 2,
    "Added gets a TTL": (
        Kept("VALUE", "@evolved.Added"),
        Kept("VALUE", "@evolved.Added", None, _DAY),
    ),
    "Retyped gets a TTL": (
        Kept("VALUE", "@evolved.Retyped"),
        Kept("VALUE", "@evolved.Retyped", None, _DAY),
    ),
    "More gets a TTL": (
        Kept("VALUE", "@evolved.More"),
        Kept("VALUE", "@evolved.More", None, _DAY),
    ),
    "windows stay": (Kept("VALUE", "INT", None, None, "window"),) * 2,
    "windows are new": (Kept("VALUE", "INT"), Kept("VALUE", "INT", None, None, "window")),
    "windows are gone": (Kept("VALUE", "INT", None, None, "window"), Kept("VALUE", "INT")),
    "timers stay": (Kept("TIMERS"),) * 2,
    "timers get windows": (Kept("TIMERS"), Kept("TIMERS", namespace="window")),
    "is new": (Kept("TIMERS"), Kept("VALUE", "INT")),
    **_LISTED,
}
_KEYS = {
    "INT": ("INT", "INT"),
    "INT -> LONG": ("INT", "LONG"),
    "STRING -> LONG": ("STRING", "LONG"),
    "KeySame": ("@evolved.KeySame", "@evolved.KeySame"),
    "KeyAdded": ("@evolved.KeyAdded", "@evolved.KeyAdded"),
    "KeyMoved": ("@evolved.KeyMoved", "@evolved.KeyMovedTo"),
    "TUPLE": ("TUPLE(INT;LONG)", "TUPLE(INT;LONG)"),
    "TUPLE of INT -> LONG": ("TUPLE(INT;INT)", "TUPLE(INT;LONG)"),
    "TUPLE of one more": ("TUPLE(INT;INT)", "TUPLE(INT;INT;INT)"),
    "TUPLE is ROW": ("TUPLE(INT;INT)", "ROW(INT;INT)"),
    "ROW gets no kind": ("ROW(INT)", "ROW_WITHOUT_KIND(INT)"),
    "SQL row": ("sql:ROW<a INT>", "sql:ROW<b INT>"),
    "SQL row of BIGINT": ("sql:ROW<a INT>", "sql:ROW<a BIGINT>"),
    "SQL row of NOT NULL": ("sql:ROW<a INT>", "sql:ROW<a INT NOT NULL>"),
}


def _reason(trace: str | None) -> str | None:
    """Return the last cause in a Java stack trace, without what differs from run to run."""
    if trace is None:
        return None
    causes = [line for line in trace.splitlines() if line and not line.startswith("\t")]
    return re.sub(r"@[0-9a-f]+", "", causes[-1].removeprefix("Caused by: "))


class EvolvedJobs:
    """The old job and the new one, of the Flink whose jars are beside `dist`."""

    def __init__(self, jdk: Path, dist: Path, folder: Path) -> None:
        self.version = flink_version(dist)
        self._folder = folder
        self._sides = []
        for side, name in enumerate(("old", "new")):
            compile_classes(folder / name, str(dist), side)
            self._sides.append(FlinkSql(jdk, dist.parent, folder / name))

    def saved(
        self,
        name: str,
        side: int,
        operators: Iterable[Mapping[str, Any]],
        keys: int = _KEYS_EACH,
        parallelism: int = 1,
    ) -> Answer:
        """Run the job of one side, which puts values into its state and takes a savepoint."""
        task = _task(operators, "hashmap", keys, parallelism)
        task |= {"fills": True, "folder": (self._folder / name).as_uri()}
        [answer] = self._sides[side].evolved_jobs([task])
        assert answer["refused"] is None, answer["refused"]
        return answer

    def restored(
        self,
        operators: Iterable[Mapping[str, Any]],
        backends: Iterable[str],
        savepoint: str,
        keys: int = _KEYS_EACH,
        parallelism: int = 1,
    ) -> list[Answer]:
        """Run the new job from a savepoint on each backend."""
        made = [*operators]
        tasks = [_task(made, backend, keys, parallelism) for backend in backends]
        return self._sides[1].evolved_jobs(task | {"savepoint": savepoint} for task in tasks)

    def all_saved(self, side: int) -> str:
        """Return the path of a savepoint of one side, with the states of all changes."""
        together = [change.of(side) for change in changes() if not change.is_alone]
        alone = [change.operator(side) for change in changes() if change.is_alone]
        operators = [operator(TOGETHER, "STRING", together), *alone]
        return str(self.saved(f"all-{side}", side, operators)["path"])

    def refusals(
        self, savepoint: str, backend: str, asked: Iterable[Change]
    ) -> dict[str, str | None]:
        """Return why the new job does not restore the state of each change, None where it does."""
        together, alone = [], {}
        for change in asked:
            if change.is_alone:
                alone[change.name] = change.operator(1)
            else:
                together.append(change.of(1))
        operators = {"": operator(TOGETHER, "STRING", together), **alone}
        tasks = [_task([each], backend, _KEYS_EACH, 1) for each in operators.values()]
        answers = self._sides[1].evolved_jobs(task | {"savepoint": savepoint} for task in tasks)
        assert answers[0]["refused"] is None, _reason(answers[0]["refused"])
        found = {name: _reason(each["refused"]) for name, each in zip(operators, answers)}
        del found[""]
        found |= {name: None for name, _ in together}
        for row in (row for answer in answers for row in answer["rows"]):
            found[row["state"]] = found[row["state"]] or _reason(
                row.get("refused") or row.get("unreadable")
            )
        return found


def _task(
    operators: Iterable[Mapping[str, Any]], backend: str, keys: int, parallelism: int
) -> dict[str, Any]:
    """Return a job that reads its state."""
    return {
        "options": BACKENDS[backend],
        "parallelism": parallelism,
        "keys": keys,
        "fills": False,
        "operators": [*operators],
    }
