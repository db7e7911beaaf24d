"""The files that a sink of files has begun, and those that wait for their commit.

The layouts are those of Flink's FileSinkCommittableSerializer (versions 1 and 2),
FileWriterBucketStateSerializer and BucketStateSerializer (1 to 3), and of the two serializers of
OutputStreamBasedPartFileWriter (1 and 2). Of a local file and of one of Hadoop's file systems they
have the hidden name too, by LocalRecoverableSerializer and HadoopRecoverableSerializer; stores
such as S3 have uploads in its place, which stay bytes that nobody reads here.
"""

from __future__ import annotations

from typing import NamedTuple

from keygroups._checks import LONG_MAX
from keygroups._serializers.data_input import Cursor

BUCKETS_STATE = "bucket-states"
"""The state of StreamingFileSink, and of SQL's tables of files. Flink: StreamingFileSinkHelper."""

_COMMITTABLE = 0x1E765C80
_BUCKET = 0x1E764B79
_PENDING, _IN_PROGRESS = 0x2C853C89, 0xB3A4073D - (1 << 32)
_LOCAL, _HADOOP = 0x1E744B57, 0xD7436C5E
_NEVER = LONG_MAX  # the time of a bucket without a file in progress


class PartFile(NamedTuple):
    """A file of a sink of files, which has a hidden name until its commit.

    `path` is its name from then on, `hidden_path` that until then, None in stores where it is an
    upload; `bytes` are as many as it had at the checkpoint, after which a restore cuts it off.
    Each is None where Flink did not write it.
    """

    path: str | None
    hidden_path: str | None
    bytes: int | None


class FileCommittable(NamedTuple):
    """The files of a bucket that a sink is to commit, and to remove.

    `pending` gets its name; `abandoned`, a file in progress that a restore left behind, and
    `compacted`, the path of one that is in another by now, are removed. `bucket` is None where a
    Flink before 1.15 wrote it.
    """

    bucket: str | None
    pending: PartFile | None
    abandoned: PartFile | None
    compacted: str | None


class BucketState(NamedTuple):
    """A bucket, which is a folder, of a writer of a sink of files.

    A restore goes on with the file `in_progress`, since `created`, epoch milliseconds; both are
    None where there is none. It commits `pending`, each with its checkpoint, which a FileSink has
    in its committer, and the older StreamingFileSink here.
    """

    subtask: int
    bucket: str
    path: str
    created: int | None
    in_progress: PartFile | None
    pending: tuple[tuple[int, PartFile], ...]


def versioned(cursor: Cursor) -> tuple[int, Cursor]:
    """Read a version and a frame. Flink: SimpleVersionedSerialization."""
    version = cursor.i32()
    return version, cursor.frame()


def read_file_committable(version: int, cursor: Cursor) -> FileCommittable:
    """Read all that is left, or raise SavepointError for bytes that are none."""
    cursor.expect("version of a file to commit", version, 1, 2)
    cursor.expect("magic number of a file to commit", cursor.i32(), _COMMITTABLE)
    bucket = cursor.utf() if version == 2 else None
    pending = _pending(*versioned(cursor)) if cursor.bool() else None
    abandoned = _in_progress(*versioned(cursor)) if cursor.bool() else None
    compacted = cursor.utf() if version == 2 and cursor.bool() else None
    cursor.expect_end("a file to commit")
    return FileCommittable(bucket, pending, abandoned, compacted)


def read_bucket(version: int, cursor: Cursor, subtask: int) -> BucketState:
    """Read all that is left, or raise SavepointError for bytes that are none."""
    cursor.expect("version of a bucket", version, 1, 2, 3)
    cursor.expect("magic number of a bucket", cursor.i32(), _BUCKET)
    bucket = _text(*versioned(cursor))
    path, created = cursor.utf(), cursor.i64()
    in_progress = None
    if cursor.bool():
        framed = versioned(cursor)
        in_progress = _stream(*framed) if version == 1 else _in_progress(*framed)
    pending = [] if version == 3 else _of_checkpoints(cursor, version)
    cursor.expect_end("a bucket")
    known = None if created == _NEVER else created
    return BucketState(subtask, bucket, path, known, in_progress, tuple(pending))


def _of_checkpoints(cursor: Cursor, version: int) -> list[tuple[int, PartFile]]:
    """Read the files that wait for their commit, of each checkpoint."""
    read, files = _stream if version == 1 else _pending, []
    of_files = cursor.i32()
    for _ in range(cursor.count(12)):
        checkpoint_id = cursor.i64()
        files += [(checkpoint_id, read(of_files, cursor.frame())) for _ in range(cursor.count(4))]
    return files


def _pending(version: int, cursor: Cursor) -> PartFile:
    """Read all of a file that waits for its commit."""
    cursor.expect("version of a pending file", version, 1, 2)
    cursor.expect("magic number of a pending file", cursor.i32(), _PENDING)
    path, size = None, None
    if version == 2:
        path = cursor.utf() if cursor.bool() else None
        size = cursor.i64()
    # Flink does not know the size of what a compactor made or an older Flink wrote: that is -1.
    return _named(path, None if size == -1 else size, cursor)


def _in_progress(version: int, cursor: Cursor) -> PartFile:
    """Read all of a file that is in progress."""
    cursor.expect("version of a file in progress", version, 1, 2)
    cursor.expect("magic number of a file in progress", cursor.i32(), _IN_PROGRESS)
    return _named(cursor.utf() if version == 2 and cursor.bool() else None, None, cursor)


def _named(path: str | None, size: int | None, cursor: Cursor) -> PartFile:
    """Read all that is left: what the file system needs to go on, with names it may have."""
    file = _stream(*versioned(cursor))
    cursor.expect_end("a file of a sink")
    return PartFile(path or file.path, file.hidden_path, file.bytes if size is None else size)


def _stream(version: int, cursor: Cursor) -> PartFile:
    """Read what a file system needs to go on with a file, of one that is not known nothing."""
    if version != 1 or cursor.left < 20 or _little(cursor, 4) not in (_LOCAL, _HADOOP):
        return PartFile(None, None, None)
    size, *lengths = (_little(cursor, count) for count in (8, 4, 4))
    if size > LONG_MAX:
        raise cursor.error(f"a file of a sink cannot have {size - (1 << 64)} bytes")
    path, hidden_path = (cursor.decode(cursor.take(length)) for length in lengths)
    cursor.expect_end("a file of a sink")
    return PartFile(path, hidden_path, size)


def _text(version: int, cursor: Cursor) -> str:
    """Read all of a text. Flink: SimpleVersionedStringSerializer."""
    cursor.expect("version of a text", version, 1)
    text = cursor.decode(cursor.take(_little(cursor, 4)))
    cursor.expect_end("a text")
    return text


def _little(cursor: Cursor, count: int) -> int:
    """Read so many bytes of an integer, the least first."""
    return int.from_bytes(cursor.take(count), "little")
