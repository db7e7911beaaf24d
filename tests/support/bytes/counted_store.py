"""A store of fsspec in the memory of this process, which is asked as one over a network is.

It counts what it is asked for, and how much it had to give back at once. Its URLs are
`counted://...`.
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


class CountedStore(AsyncFileSystem):  # type: ignore[misc]  # fsspec is untyped
    """The store; `files` are its files by their paths, `asked` what it was asked for, in order."""

    protocol = "counted"
    cachable = True
    files: dict[str, bytes] = {}  # noqa: RUF012  # of all its instances, as of fsspec's own
    asked: list[tuple[Any, ...]] = []  # noqa: RUF012
    at_once = most_at_once = 0
    lists = True

    def invalidate_cache(self, path: str | None = None) -> None:
        """There is none."""

    @classmethod
    @contextmanager
    def _request(cls, *request: Any) -> Iterator[None]:
        cls.asked.append(request)
        cls.at_once += 1
        cls.most_at_once = max(cls.most_at_once, cls.at_once)
        try:
            yield
        finally:
            cls.at_once -= 1

    async def _info(self, path: str, **given: Any) -> dict[str, Any]:
        with self._request(SIZE, path):
            await asyncio.sleep(0)
            return {"name": path, "size": len(self._content(path)), "type": "file"}

    async def _ls(self, path: str, detail: bool = True, **given: Any) -> list[dict[str, Any]]:
        with self._request(LIST, path):
            await asyncio.sleep(0)
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
        with self._request(READ, path, start, end):
            await asyncio.sleep(0)
            return self._content(path)[start:end]

    def _content(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(f"no such key: {path}")
        return self.files[path]

    @classmethod
    def reads(cls) -> list[tuple[str, int, int]]:
        """Return what was read, and where it starts and ends."""
        return [(name, start or 0, end) for kind, name, *span in cls.asked if kind == READ for start, end in [span]]

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
    CountedStore.at_once = CountedStore.most_at_once = 0
    CountedStore.lists = True
    yield CountedStore
    CountedStore.files = {}
