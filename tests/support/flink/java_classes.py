"""Classes in Java archives: what each extends and implements, read from the class files.

JVM specification, chapter 4: the constant pool, then flags, the class, what it extends and
implements.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ABSTRACT = 0x0400
# The size of a constant by its tag, in bytes after the tag; that of a text (1) is before it.
_SIZES = {7: 2, 8: 2, 16: 2, 19: 2, 20: 2, 15: 3, 5: 8, 6: 8}


class JavaClass(NamedTuple):
    """A class: its name, whether it has no objects of its own, and what it derives from."""

    name: str
    is_abstract: bool
    bases: tuple[str, ...]


def read_class(data: bytes) -> JavaClass:
    """Read a class file as far as it says what it derives from."""
    (count,) = struct.unpack_from(">H", data, 8)
    texts, classes = {}, {}
    pos, index = 10, 1
    while index < count:
        tag = data[pos]
        pos += 1
        if tag == 1:
            (size,) = struct.unpack_from(">H", data, pos)
            texts[index] = data[pos + 2 : pos + 2 + size]
            pos += 2 + size
        else:
            if tag == 7:
                (classes[index],) = struct.unpack_from(">H", data, pos)
            pos += _SIZES.get(tag, 4)
        index += 2 if tag in (5, 6) else 1
    flags, this, base, interfaces = struct.unpack_from(">4H", data, pos)
    others = struct.unpack_from(f">{interfaces}H", data, pos + 8)

    def name(constant: int) -> str:
        return texts[classes[constant]].decode().replace("/", ".")

    bases = tuple(name(one) for one in (base, *others) if one)
    return JavaClass(name(this), bool(flags & _ABSTRACT), bases)


def classes_in(archive: Path | io.BytesIO, package: str) -> Iterator[JavaClass]:
    """Yield the classes of a package in an archive, and in the archives within it."""
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            if name.endswith(".jar"):
                yield from classes_in(io.BytesIO(files.read(name)), package)
            elif name.endswith(".class") and name.startswith(package.replace(".", "/")):
                yield read_class(files.read(name))


def implementations(archives: list[Path], package: str, interface: str) -> set[str]:
    """Return the classes of a package that are an interface and have objects of their own."""
    known = {one.name: one for archive in archives for one in classes_in(archive, package)}

    def implements(name: str) -> bool:
        return name == interface or any(
            map(implements, known[name].bases if name in known else ())
        )

    return {name for name, one in known.items() if not one.is_abstract and implements(name)}
