"""What can be told of the values that users hold, in any process: for values that were pickled."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from keygroups import LocalKeyBy
from keygroups.partitioners import StreamPartitioner
from keygroups.savepoint import Operator, Savepoint
from keygroups.state_keys import CompositeKeySerializer
from support.inside.savepoints import EntryEncoder

# Of what has no text that tells it all.
_CONTENTS: dict[type, Callable[[Any], object]] = {
    CompositeKeySerializer: lambda one: one.serialize(5, "a", "b"),
    EntryEncoder: lambda one: (one.states, one.encode(1, 5, 7)),
    LocalKeyBy: lambda one: one.snapshot_state(),
    Operator: lambda one: (
        *(one.operator_id, one.uid, one.name, one.parallelism, one.max_parallelism),
        *(one.subtasks, one.states, one.key_group_bytes()),
        *(list(one.entries()), list(one.operator_state())),
    ),
    Savepoint: lambda one: (str(one), one.metadata, [*map(shown, one.operators)]),
    StreamPartitioner: lambda one: sorted(vars(one).items()),
}


def shown(value: object) -> str:
    """Return all that a value says of itself."""
    if isinstance(value, Exception):
        return repr(value.args)
    item = [tell(value) for kind, tell in _CONTENTS.items() if isinstance(value, kind)]
    return f"{type(value).__name__}: {item[0] if item else (str(value), repr(value))!r}"


def shown_of(pickled: list[bytes]) -> list[str]:
    """Return the texts that pickled values print."""
    return [shown(pickle.loads(one)) for one in pickled]


def shown_here_and_in_a_fork(pickled: list[bytes]) -> list[list[str]]:
    """Return the same of this process and, where processes fork, of a fork of it."""
    found = [shown_of(pickled)]
    if "fork" in multiprocessing.get_all_start_methods():
        values = [pickle.loads(one) for one in pickled]
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as fork:
            found.append(list(fork.map(shown, values, chunksize=len(values))))
    return found
