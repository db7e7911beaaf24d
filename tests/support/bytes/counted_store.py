"""A store of fsspec in the memory of this process, which is asked as one over a network is.

It counts what it is asked for, and how often one had to wait for it: it answers nothing before
one does, and then all. Its URLs are `counted://...`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem, get_loop, sync

SIZE, READ, LIST = "size", "read", "list"
_LOOK = 0.001  # seconds between two looks at whether the reader waits


class CountedStore(AsyncFileSystem):  # type: ignore[misc]  # fsspec is untyped
    """The store; `files` are its files by their paths, `asked` what it was asked for, in order."""

    protocol = "counted"
    cachable = True
    files: dict[str, bytes] = {}  # noqa: RUF012  # all its instances share it, as fsspec's own do
    asked: list[tuple[Any, ...]] = []  # noqa: RUF012
    rounds = 0
    lists = True
    reader = 0  # the thread
    _waiting: list[asyncio.Future[None]] = []  # noqa: RUF012

    def invalidate_cache(self, path: str | None = None) -> None:
        """There is none."""

    @classmethod
    async def _answer(cls, *request: Any) -> None:
        """Note a request, and wait until it is answered."""
        cls.asked.append(request)
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        cls._waiting.append(answer)
        if len(cls._waiting) == 1:
            loop.call_later(_LOOK, cls._answer_all, loop, 0)
        await answer

    @classmethod
    def _answer_all(cls, loop: asyncio.AbstractEventLoop, before: int) -> None:
        """Answer if the reader waits, and no request has come since it was seen to."""
        frame = sys._current_frames().get(cls.reader)
        waits = frame is None or frame.f_code is threading.Condition.wait.__code__
        if not waits or len(cls.asked) != before:
            loop.call_later(_LOOK, cls._answer_all, loop, len(cls.asked) if waits else 0)
            return
        cls.rounds += 1
        for answer in cls._waiting:
            if not answer.done():
                answer.set_result(None)
        cls._waiting.clear()

    async def _info(self, path: str, **options: Any) -> dict[str, Any]:
        await self._answer(SIZE, path)
        return {"name": path, "size": len(self._content(path)), "type": "file"}

    async def _ls(self, path: str, detail: bool = True, **options: Any) -> list[dict[str, Any]]:
        await self._answer(LIST, path)
        if not self.lists:
            raise PermissionError("no listing here")
        return [
            {"name": name, "size": len(content), "type": "file"}
            for name, content in self.files.items()
            if name.rpartition("/")[0] == path.rstrip("/")
        ]

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **options: Any
    ) -> bytes:
        await self._answer(READ, path, start, end)
        return self._content(path)[start:end]

    def _content(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(f"no such key: {path}")
        return self.files[path]

    @classmethod
    def reads(cls) -> list[tuple[str, int, int]]:
        """Return each read as its file, and the start and end of the part."""
        return [
            (name, *span)
            for kind, name, *span in cls.asked
            if kind == READ and span[1] is not None
        ]

    @classmethod
    def count(cls, kind: str) -> int:
        """Return the number of requests of a kind."""
        return sum(asked[0] == kind for asked in cls.asked)


fsspec.register_implementation("counted", CountedStore, clobber=True)


@contextmanager
def counted_store() -> Iterator[type[CountedStore]]:
    """Give a store with nothing in it."""
    CountedStore.reader = threading.get_ident()
    CountedStore.files = {}
    CountedStore.lists = True
    yield CountedStore
    CountedStore.files = {}
    sync(get_loop(), asyncio.sleep, 10 * _LOOK)  # until nothing of this is under way
