"""The values of PyFlink without a counterpart among those of Java."""

from __future__ import annotations

from keygroups._checks import show


class Pickle(bytes):
    """The bytes of a pickle that is not read here, as it has an object of the job's in it.

    Nothing is unpickled. It is written back as it is, where bytes would be pickled.
    """

    def __repr__(self) -> str:
        return f"Pickle({bytes(self)!r})"

    def __str__(self) -> str:
        return show(bytes(self))
