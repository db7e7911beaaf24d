"""The file systems of URLs: Flink's schemes as fsspec has them, and what each takes."""

from __future__ import annotations

from types import ModuleType
from typing import Any, cast

from keygroups.errors import KeyGroupsError, printable

_OF_FLINK = {
    **dict.fromkeys(("s3p", "s3n"), "s3"),
    **dict.fromkeys(("abfss", "wasb", "wasbs"), "abfs"),
}
"""Schemes that Flink and Hadoop take and fsspec does not, with its own for the same store."""
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "oss": "ossfs", "gs": "gcsfs", "gcs": "gcsfs"} | (
    dict.fromkeys(("abfs", "az"), "adlfs")
)
_HADOOP = (
    "hdfs takes a Hadoop client and a JVM, which HADOOP_HOME and JAVA_HOME name; "
    "webhdfs://HOST:PORT/... takes neither"
)


def fsspec_url(url: str) -> str:
    """Return a URL with the scheme by which fsspec knows its store.

    >>> fsspec_url("s3p://bucket/job/chk-7")
    's3://bucket/job/chk-7'
    """
    scheme, colon, rest = url.partition("://")
    return f"{_OF_FLINK.get(scheme, scheme)}{colon}{rest}"


def filesystem_of(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises KeyGroupsError naming the package that is missing, or a scheme that nothing opens; else
    whatever the client of the store raises.
    """
    core, known = import_fsspec(url).core, fsspec_url(url)
    try:
        return cast("tuple[Any, str]", core.url_to_fs(known))
    except Exception as error:
        if advice := _advice(known.partition("://")[0], error):
            raise KeyGroupsError(f"{printable(url)}: {advice}") from None
        raise


def class_of_store(url: str) -> Any:
    """Return the class of the file system of a URL."""
    return import_fsspec(url).get_filesystem_class(fsspec_url(url).partition("://")[0])


def _advice(scheme: str, error: Exception) -> str:
    """Return the advice where no file system is made, "" where its client says more."""
    if isinstance(error, ImportError) and scheme in _PACKAGES:
        return f"{scheme}:// takes the package {_PACKAGES[scheme]}, which is not installed"
    if scheme == "hdfs" and isinstance(error, OSError):
        return _HADOOP
    if isinstance(error, ValueError) and "Protocol not known" in str(error):
        return f"fsspec knows no {scheme}://, nor any package for it"
    return ""


def import_fsspec(path: str) -> ModuleType:
    """Return fsspec, which opens a URL, or raise KeyGroupsError naming the extra."""
    try:
        import fsspec
    except ImportError:
        raise KeyGroupsError(
            f"{path}: a URL is opened with fsspec: pip install 'keygroups[savepoint]'"
        ) from None
    return cast("ModuleType", fsspec)
