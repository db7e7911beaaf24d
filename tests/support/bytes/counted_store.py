"""A store of fsspec in the memory of this process, which is asked as one over a network is.

It counts what it is asked for, and how often one had to wait for it: it answers all at once when
nobody has asked for more for a while. Its URLs are `counted://...`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem

SIZE, READ, LIST = "size", "read", "list"
_QUIET = 0.02  # seconds without a request, after which all are answered


class CountedStore(AsyncFileSystem):  # type: ignore[misc]  # fsspec is untyped
    """The store; `files` are its files by their paths, `asked` what it was asked for, in order."""

    protocol = "counted"
    cachable = True
    files: dict[str, bytes] = {}  # noqa: RUF012  # of all its instances, as of fsspec's own
    asked: list[tuple[Any, ...]] = []  # noqa: RUF012
    rounds = 0
    lists = True
    _waiting: list[asyncio.Future[None]] = []  # noqa: RUF012
    _timer: asyncio.TimerHandle | None = None

    def invalidate_cache(self, path: str | None = None) -> None:
        """There is none."""

    @classmethod
    async def _answer(cls, *request: Any) -> None:
        """Note a request, and wait until it is answered."""
        cls.asked.append(request)
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        cls._waiting.append(answer)
        if cls._timer is not None:
            cls._timer.cancel()
        cls._timer = loop.call_later(_QUIET, cls._answer_all)
        await answer

    @classmethod
    def _answer_all(cls) -> None:
        cls.rounds += 1
        for answer in cls._waiting:
            if not answer.done():
                answer.set_result(None)
        cls._waiting.clear()

    async def _info(self, path: str, **given: Any) -> dict[str, Any]:
        await self._answer(SIZE, path)
        return {"name": path, "size": len(self._content(path)), "type": "file"}

    async def _ls(self, path: str, detail: bool = True, **given: Any) -> list[dict[str, Any]]:
        await self._answer(LIST, path)
        if not self.lists:
            raise PermissionError("no listing here")
        return [
            {"name": name, "size": len(content), "type": "file"}
            for name, content in self.files.items()
            if name.rpartition("/")[0] == path.rstrip("/")
        ]

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **given: Any
    ) -> bytes:
        await self._answer(READ, path, start, end)
        return self._content(path)[start:end]

    def _content(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(f"no such key: {path}")
        return self.files[path]

    @classmethod
    def reads(cls) -> list[tuple[str, int, int]]:
        """Return what was read, and where it starts and ends."""
        return [
            (name, *span)
            for kind, name, *span in cls.asked
            if kind == READ and span[1] is not None
        ]

    @classmethod
    def count(cls, kind: str) -> int:
        """Return how many requests of a kind there were."""
        return sum(asked[0] == kind for asked in cls.asked)


fsspec.register_implementation("counted", CountedStore, clobber=True)


@contextmanager
def counted_store(folder: Path | None = None) -> Iterator[type[CountedStore]]:
    """Give a store that has the files of a folder as `counted://folder`, and nothing else."""
    CountedStore.files = {}
    if folder is not None:
        for path in folder.rglob("*"):
            if path.is_file():
                CountedStore.files[f"folder/{path.relative_to(folder)}"] = path.read_bytes()
    CountedStore.asked = []
    CountedStore.rounds = 0
    CountedStore.lists = True
    yield CountedStore
    CountedStore.files = {}
