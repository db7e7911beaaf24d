"""What tests of edits share: an edit of one operator, and keys of which one cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from keygroups.savepoint import EditReport, OperatorEditor, Savepoint, SavepointWriter
from keygroups.state_keys import Serializer
from support.inside.serializers import UnreadableError

Verbs = Callable[[OperatorEditor], object]


def edit(old: Savepoint | Path, path: Path, name: str, verbs: Verbs) -> EditReport:
    """Edit one operator of a savepoint, and return what is reported of it."""
    with SavepointWriter.from_existing_savepoint(old, path) as writer:
        verbs(writer.operator(name))
    return writer.report()


class OddSerializer(Serializer):
    """Keys of the job, of a byte each; 0x80 begins one that cannot be read."""

    name = "ODD"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[Any, int]:
        if data[pos] == 0x80:
            raise UnreadableError("of a subclass")
        return data[pos], pos + 1
