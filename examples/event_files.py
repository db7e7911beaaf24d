"""Read a table of events with Spark, all of it or none.

Spark is silent about what it does not read: it skips files by their names and folders by their
depth, takes a path for a pattern, knows the header of one CSV file only, and puts question marks
where the text is not UTF-8. So here the files are listed, and Python's csv module, which is
strict, reads the CSV first. Then Spark gets these very files, and has to find as many records.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import types as T

# Compressions that both Python and Spark read; Spark knows them by exactly these endings.
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
MOST_COLUMNS = 20480  # columns that Spark's CSV reader takes by default
SPARK_ERRORS = (PySparkException, Py4JJavaError)
COMPRESSED = (*OPENERS, ".deflate", ".lz4", ".snappy", ".xz", ".z", ".zip", ".zst")


class InputError(Exception):
    """Something about the arguments or the data that the user can put right."""


@dataclass(frozen=True)
class Table:
    """The files of a table. For CSV, its columns: the header's, then those of its folders."""

    root: Path
    files: tuple[Path, ...]
    header: tuple[str, ...] | None  # None for Parquet
    folder_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class CsvRecords:
    """The number of records of a CSV table, and its files by the ends of their lines."""

    count: int
    by_line_end: dict[str, list[Path]]


def local_uri(path: Path) -> str:
    """Return the URI of an absolute path, which Spark takes for a local one in any case."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(path)!r}: a name that is not UTF-8") from None
    return f"file://{path}"


def readable_uri(path: Path) -> str:
    """Return the URI of an absolute path, escaped for Spark's readers, which take patterns."""
    return re.sub(r"([][{}*?\\])", r"\\\1", local_uri(path))


def find_table(root: Path) -> Table:
    """Return the table of a file, or of a folder with folders in it.

    Raises InputError for files that Spark would skip or count twice, and for several kinds of
    files in a folder.
    """
    # A link keeps its own name, as Spark knows compressed files by their names.
    root = root.resolve() if root.is_dir() else root.parent.resolve() / root.name
    try:
        files = tuple(list_files(root)) if root.is_dir() else (root,)
    except OSError as error:
        raise InputError(f"--input: {error.filename}: {error.strerror}") from None
    places: dict[str, Path] = {}
    for file in files:
        if not file.is_file():
            raise InputError(f"--input: {file}: no regular file")
        if is_hidden(file.name):
            raise InputError(f"--input: {file}: Spark skips files of such a name: rename it")
        same = places.setdefault(os.path.realpath(file), file)
        if same != file:
            raise InputError(f"--input: {file} and {same} are one file, by a symbolic link")
    if not (is_csv(root) or any(map(is_csv, files))):
        return Table(root, files, None)
    for file in files:
        if not (is_csv(root) or is_csv(file)):
            raise InputError(f"--input: {file} is no CSV file, and other files there are")
        if file.suffix.lower() in COMPRESSED and file.suffix not in OPENERS:
            endings = " or ".join(OPENERS)
            raise InputError(f"--input: {file}: compressed CSV has to end in {endings}")
    return read_header(root, files)


def list_files(root: Path) -> Iterator[Path]:
    """Yield the files below a folder, in order, without the hidden ones that hold no data."""

    def refuse(error: OSError) -> None:
        raise error

    seen = set()
    for folder, folders, names in os.walk(root, onerror=refuse, followlinks=True):
        place = os.path.realpath(folder)
        if place in seen:
            raise InputError(f"--input: {folder} is there twice, by a symbolic link")
        seen.add(place)
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            if not any(map(is_hidden, file.relative_to(root).parts)):
                yield file
            elif is_csv(file) or file.suffix.lower() == ".parquet":
                raise InputError(f"--input: {file}: Spark skips files in such a place: rename it")


def is_hidden(name: str) -> bool:
    """Return whether Spark skips files and folders of a name."""
    return (
        name.startswith(".")
        or (name.startswith("_") and "=" not in name)
        or name.endswith("._COPYING_")
    )


def is_csv(path: Path) -> bool:
    """Return whether a file or folder is CSV by its name, compressed or not."""
    *_, second, last = ["", "", *(suffix.lower() for suffix in path.suffixes)]
    return last == ".csv" or (second == ".csv" and last in COMPRESSED)


def read_header(root: Path, files: tuple[Path, ...]) -> Table:
    """Return the CSV table whose columns the first header names."""
    header = next((row for file in files for row, _, _ in read_rows(file)), [])
    header = [name or f"_c{i}" for i, name in enumerate(header)]  # Spark names empty ones so.
    folders = [
        [unquote(part.partition("=")[0]) for part in file.relative_to(root).parts if "=" in part]
        for file in (file.parent if root.is_dir() else root for file in files)
    ]
    for file, names in zip(files, folders):
        if names != folders[0]:
            raise InputError(f"--input: {file}: its folders name other columns than {files[0]}")
    if len(header) > MOST_COLUMNS:
        raise InputError(f"--input: {files[0]}: more than the {MOST_COLUMNS} columns Spark reads")
    table = Table(root, files, tuple(header), tuple(*folders[:1]))
    known: dict[str, str] = {}
    for name in (*header, *table.folder_columns):
        if name.lower() in known:
            same = known[name.lower()]
            raise InputError(f"--input: {root}: Spark takes columns {same!r} and {name!r} for one")
        known[name.lower()] = name
    return table


def check_csv(files: Iterable[Path]) -> CsvRecords:
    """Read all files as strict CSV; an InputError names the file and the line."""
    first: tuple[Path, list[str]] | None = None
    count, by_line_end = 0, defaultdict[str, list[Path]](list)
    for file in files:
        header: list[str] | None = None
        for row, line, end in read_rows(file):
            if not row:
                raise InputError(f'--input: {file}, line {line}: blank; an empty text is ""')
            if header is None:
                first = first or (file, row)
                if row != first[1]:
                    message = f"--input: the header of {file} is not that of {first[0]}"
                    raise InputError(f"{message}: {fit(repr(row))}, {fit(repr(first[1]))}")
                header, line_end = row, end or "\n"
                by_line_end[line_end].append(file)
                continue
            if len(row) != len(header):
                fields = f"{len(row)} fields, where the header has {len(header)}"
                raise InputError(f"--input: {file}, line {line}: {fields}")
            if end not in (line_end, ""):
                mixed = f"ends in {end!r}, the lines before in {line_end!r}"
                raise InputError(f"--input: {file}, line {line}: {mixed}")
            count += 1
    return CsvRecords(count, by_line_end)


def read_rows(file: Path) -> Iterator[tuple[list[str], int, str]]:
    """Yield each row of a CSV file, the number of its last line, and the end of that line."""
    csv.field_size_limit(2**31 - 1)
    line = ""

    def lines(text: Iterable[str]) -> Iterator[str]:
        nonlocal line
        for line in text:
            if "\0" in line:
                number = reader.line_num + 1
                raise InputError(f"--input: {file}, line {number}: has a NUL character")
            yield line

    try:
        with (
            OPENERS.get(file.suffix, Path.open)(file, "rb") as stream,
            io.TextIOWrapper(stream, "utf-8-sig", newline="") as text,
        ):
            reader = csv.reader(lines(text), strict=True)
            for row in reader:
                yield row, reader.line_num, line[len(line.rstrip("\r\n")) :]
    except csv.Error as error:
        raise InputError(f"--input: {file}, line {reader.line_num}: no CSV: {error}") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(f"--input: {file} is not UTF-8: byte {byte:#x}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"--input: {file} cannot be read: {error}") from None


def read_events(spark: SparkSession, table: Table, csv_records: CsvRecords | None) -> DataFrame:
    """Return the DataFrame of a table; CSV as Flink's CSV format reads it into STRING columns."""
    reader = spark.read
    if table.root.is_dir():
        reader = reader.option("basePath", local_uri(table.root))
    try:
        if csv_records is None:
            # Without merging, columns that the first file lacks would be left out.
            return reader.option("mergeSchema", True).parquet(
                *map(readable_uri, table.files or [table.root])
            )
        return read_csv(reader, table, csv_records)
    except SPARK_ERRORS as error:
        kind = "Parquet" if csv_records is None else "CSV"
        raise InputError(f"--input: {table.root} is not read as {kind}: {reason(error)}") from None


def read_csv(reader: DataFrameReader, table: Table, csv_records: CsvRecords) -> DataFrame:
    """Return the DataFrame of checked CSV, in which files are read by the ends of their lines.

    Spark would take the first line end in a file for that of its lines, even one in quotes.
    """
    assert table.header is not None
    columns = (*table.header, *table.folder_columns)
    # A short row fails, instead of ending in nulls; with pruning Spark would not see it.
    reader = (
        reader.schema(T.StructType([T.StructField(name, T.StringType()) for name in columns]))
        .options(header=True, escape='"', multiLine=True, unescapedQuoteHandling="RAISE_ERROR")
        .options(mode="FAILFAST", columnPruning=False)
    )
    tables = [
        reader.option("lineSep", line_end).csv([readable_uri(file) for file in files])
        for line_end, files in csv_records.by_line_end.items()
    ]
    return reduce(DataFrame.union, tables).na.fill("", [quote(name) for name in table.header])


def quote(name: str) -> str:
    """Return the name of a column in backquotes, as it may hold dots."""
    return "`" + name.replace("`", "``") + "`"


def fit(text: str, width: int = 40) -> str:
    """Return a text, shortened in the middle, where names and keys differ least."""
    half = (width - 3) // 2
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= width else f"{text[:half]}...{text[-half:]}"


def reason(error: Exception) -> str:
    """Return the first line of an error's message, without Spark's Java stack."""
    message = str(error)
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        message = str(cause.getMessage())
    return message.strip().partition("\n")[0]
