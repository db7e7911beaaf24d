"""Makes savepoints that no job wrote: each of what `_metadata` and state files say is made up.

A savepoint is a dict of files. Most of its bytes are right, so that what is wrong is met deep
down: places of other files and hosts, counts, offsets and sizes of what is not there, key groups
that overlap, subtasks that are there twice, Java objects within themselves, rows whose parts are
one another, blocks that are named again and again; or a few bytes are others.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random

from keygroups.savepoint import KryoEnum, KryoFields
from support.bytes import java_bytes as jb
from support.bytes import savepoint_bytes as sb
from support.bytes import sst_bytes as sst

Files = dict[str, bytes]
Value = Callable[[], bytes]

# fmt: off
SCHEMES = [
    "abfs", "adl", "arrow_hdfs", "asynclocal", "az", "blockcache", "box", "cached", "data",
    "dask", "dbfs", "dir", "dropbox", "dvc", "file", "filecache", "ftp", "gcs", "gdrive",
    "generic", "git", "github", "gs", "hdfs", "hf", "http", "https", "jlab", "lakefs",
    "libarchive", "local", "memory", "oci", "oss", "reference", "root", "s3", "s3a", "sftp",
    "simplecache", "smb", "ssh", "tar", "tos", "wandb", "webdav", "webhdfs", "zip",
]
# fmt: on
TEMPLATE = (  # fsspec made code of it
    'data:application/json,{"version":1,"templates":{"f":"{{c()}}"},"refs":{"x":["{{f()}}"]}}'
)
CLASSES: dict[
    str, KryoFields | KryoEnum
] = {  # A user describes them; the savepoint may have anything in their places.
    "a.B": KryoFields(
        any="java.lang.Object",
        e="a.E",
        list="java.util.List<a.B>",
        map="java.util.Map<java.lang.String, java.lang.Object>",
        n="int",
        texts="java.util.List<java.lang.String>",
    ),
    "a.E": KryoEnum("X", "Y"),
    "a.F": KryoFields(again="a.F", other="a.F", is_final=True),
}
_CONNECTORS = "org.apache.flink.streaming.connectors."
KAFKA = f"{_CONNECTORS}kafka.internals.KafkaTopicPartition"
KINESIS = f"{_CONNECTORS}kinesis.model.SequenceNumber"
CONSUMERS = ("topic-partition-offset-states", "Kinesis-Stream-Shard-State")
LISTS = ("java.util.ArrayList", "java.util.ImmutableCollections$ListN", "java.util.HashMap")
MANY = (2**31 - 1, 2**30, 100_000, 32_768, 1_000, -1, -(2**31))
EDGES = (-(2**63), -1, 0, 1, 5, 127, 2**31, 2**40, 2**63 - 1)


class Maker:
    """Makes hostile savepoints from random numbers; `outside` are places that it may name."""

    def __init__(self, seed: int, outside: Sequence[str]) -> None:
        self._random = Random(seed)
        self._outside = outside
        self._files: Files = {}

    def files(self) -> Files:
        """Return the files of a new savepoint."""
        self._files = {}
        operators = [self._operator() for _ in range(self._count(1, 3))]
        if self._rarely():
            operators *= self._count(2, 30)
        properties = jb.stream(self._java(3)) if self._rarely() else sb.NO_PROPERTIES
        version = self._random.choice((5, 6))
        data = sb.metadata(operators, version=version, properties=properties)
        self._files["_metadata"] = self._damaged(data)
        return self._files

    # --- chance -----------------------------------------------------------------------------

    def _rarely(self, times: int = 40) -> bool:
        return self._random.randrange(times) == 0

    def _count(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def _choice(self, *makers: Callable[[], bytes]) -> bytes:
        return self._random.choice(makers)()

    def _damaged(self, data: bytes) -> bytes:
        """Return bytes, in one of ten some others in their place, or cut."""
        if not self._rarely(10) or not data:
            return data
        changed = bytearray(data)
        for _ in range(self._count(1, 3)):
            place = self._random.randrange(len(changed))
            number = self._random.choice((0, 1, 0x7F, 0x80, 0xFF, self._random.randrange(256)))
            changed[place : place + 1] = bytes([number]) * self._random.choice((1, 1, 1, 0, 4))
            changed = changed or bytearray(1)
        return bytes(changed[: self._random.choice((len(changed), -1))])

    # --- _metadata --------------------------------------------------------------------------

    def _operator(self) -> bytes:
        groups = self._random.choice((1, 128, 128, 128, 129, 32_768))
        parallelism = min(groups, self._count(1, 4))
        indexes = list(range(parallelism))
        if self._rarely():
            indexes = [self._random.choice(indexes) for _ in range(self._count(1, 40))]
        name = self._random.choice(("", "a", "a", "\x1b[2J\u202e", "n" * 20_000))
        return sb.operator(
            [self._subtask(index, parallelism, groups) for index in indexes],
            parallelism=parallelism,
            max_parallelism=groups,
            operator_id=self._random.randbytes(16) if not self._rarely() else bytes(16),
            name=name,
            uid=name,
            coordinator=self._stream(b"c") if self._rarely() else b"\0",
        )

    def _subtask(self, index: int, parallelism: int, groups: int) -> bytes:
        first, last = index * groups // parallelism, (index + 1) * groups // parallelism - 1
        if self._rarely():
            first, last = 0, groups - 1
        keyed = self._keyed(first, last - first + 1, groups)
        raw = self._keyed(first, 1, groups) if self._rarely() else b"\0"
        operator = self._operator_state() if self._rarely(3) else b""
        return sb.subtask(
            index,
            managed_operator=operator,
            raw_operator=self._operator_state() if self._rarely() else b"",
            managed_keyed=keyed,
            raw_keyed=raw,
        )

    def _keyed(self, first: int, count: int, groups: int, depth: int = 0) -> bytes:
        if self._rarely():
            first, count = self._count(0, groups), self._random.choice((1, 40, *MANY))
        if count > 200 and not self._rarely():  # 8 bytes an offset
            count = 40
        make = self._random.randrange(8)
        if make == 0 and depth < 12 and self._rarely(4):  # the changelog backend's, in themselves
            inner = b"".join(self._keyed(first, count, groups, depth + 1) for _ in range(2))
            head = sb.i32(first, count) + sb.i64(0)
            return b"\x0e" + head + sb.i32(2) + inner + sb.i32(0) + sb.i64(0, 0) + sb.utf("id")
        if make < 3:
            return self._rocksdb(first, count, groups)
        key_snapshot, key = self._type(1)
        header, entries = self._header_and_entries(key_snapshot, key)
        is_canonical = make < 7
        data = header
        offsets: list[int] = []
        for key_group in range(first, first + min(max(count, 0), 32_768)):
            offsets.append(len(data) if len(offsets) < 3 else 0 if is_canonical else -1)
            if len(offsets) <= 3:
                data += self._key_group(key_group, groups, entries, is_canonical)
        if self._rarely() and offsets:
            for _ in range(self._count(1, 5)):
                place = self._random.randrange(len(offsets))
                offsets[place] = self._random.choice((*EDGES, len(header), len(data)))
        form = sb.canonical if is_canonical else self._random.choice((sb.native, sb.older))
        return form(first, offsets, self._stream(self._damaged(data)))

    def _rocksdb(self, first: int, count: int, groups: int) -> bytes:
        key_snapshot, key = self._type(1)
        header, entries = self._header_and_entries(key_snapshot, key)
        prefix_size = 1 if groups <= 128 else 2
        records = sorted(
            {
                self._prefix(first + self._count(0, 3), prefix_size) + one: value
                for _, one, value in entries
            }.items()
        )
        version = self._random.choice((0, 1, 5))
        data = sst.sst(
            [(one, 5, 1, value) for one, value in records], "s0", per_block=2, version=version
        )
        files = [("a.sst", self._stream(self._damaged(data)))]
        if self._rarely():
            files *= self._random.choice((2, 30))
        return sb.rocksdb(first, count, self._stream(header), files, [])

    def _prefix(self, key_group: int, size: int) -> bytes:
        return key_group.to_bytes(4, "big", signed=True)[-size:]

    def _operator_state(self) -> bytes:
        snapshot, value = self._element()
        name = self._random.choice(("s", *CONSUMERS))
        states = [
            sb.meta_info(
                name,
                1,
                {"OPERATOR_STATE_DISTRIBUTION_MODE": "UNION"},
                {"VALUE_SERIALIZER": snapshot},
            )
        ]
        is_compressed = self._rarely(4)
        data = sb.operator_header(states, [], compressed=is_compressed)
        values = [value() for _ in range(self._count(0, 4))]
        if is_compressed:  # Flink 1.18.0 wrote that all elements start where their chunk does.
            data += b"\xff\6\0\0sNaPpY"
            offsets = [len(data)] * len(values)
            data += self._damaged(sb.snappy_chunk(b"".join(values)))
        else:
            sizes = [0, *map(len, values)]
            offsets = [len(data) + sum(sizes[: index + 1]) for index in range(len(values))]
            data += b"".join(values)
        if self._rarely(8) and offsets:
            offsets *= self._random.choice((1, 2, 500))
            offsets[-1] = self._random.choice((*EDGES, offsets[-1]))
        mode = 1 if not self._rarely(8) else self._count(0, 2)
        return sb.operator_state([(name, mode, offsets)], self._stream(data))

    # --- where bytes are --------------------------------------------------------------------

    def _stream(self, data: bytes) -> bytes:
        size = len(data) if not self._rarely(20) else self._random.choice((0, *EDGES))
        kind = self._random.randrange(20)
        if kind < 14:
            return sb.inline(data)
        if kind < 18:
            name = f"file-{len(self._files)}"
            self._files[name] = data
            return sb.relative(name, size)
        if kind == 18:
            return sb.relative(self._place(), size)
        return self._choice(
            lambda: sb.absolute(self._place(), size),
            lambda: sb.segment(self._place(), self._random.choice(EDGES), size),
        )

    def _place(self) -> str:
        """Return a place that is not the savepoint's."""
        scheme, place = self._random.choice(SCHEMES), self._random.choice(self._outside)
        return self._random.choice(
            [
                place,
                f"file://{place}",
                f"{scheme}://{place}",
                f"{scheme}://x::{TEMPLATE}",
                f"{scheme}::file://{place}",
                f"simplecache::{scheme}://127.0.0.1:9/x",
                f"http://127.0.0.1:9/{scheme}",
                f"../../..{place}",
                f"x/../../../..{place}",
                f".\\..{place}",
                f"file-0\0{place}",
                "",
                ".",
                "/dev/zero",
                "\ud800",
                "a" * 5_000,
            ]
        )

    # --- states, types and values -----------------------------------------------------------

    def _header_and_entries(
        self, key_snapshot: bytes, key: Value
    ) -> tuple[bytes, list[tuple[int, bytes, bytes]]]:
        """Return a header, and entries: the number of the state, key with namespace, value."""
        states, entries = [], []
        for number in range(self._count(1, 3)):
            snapshot, value = self._type(self._count(0, 3))
            kind = self._random.choice(
                ("VALUE", "VALUE", "REDUCING", "AGGREGATING", "LIST", "MAP")
            )
            user_key_snapshot, user_key = self._type(0)
            if kind == "LIST":
                written = sb.list_of(snapshot)
            elif kind == "MAP":
                written = sb.map_of(user_key_snapshot, snapshot)
            else:
                written = snapshot
            name = f"s{number}" if not self._rarely() else "s0"
            if self._rarely(4):
                user_keys = user_key_snapshot if kind == "MAP" or self._rarely() else b""
                states.append(sb.async_state(name, kind, snapshot, user_key=user_keys))
            else:
                states.append(sb.state(name, kind, written))
            for _ in range(self._count(0, 4)):
                more = user_key() if kind == "MAP" else b""
                mark = b"\0" if kind == "MAP" else b""
                entries.append((number, key() + b"\0" + more, mark + value()))
        header = sb.keyed_header(key_snapshot, states, compressed=self._rarely(30))
        return self._damaged(header), entries

    def _key_group(
        self,
        key_group: int,
        groups: int,
        entries: Sequence[tuple[int, bytes, bytes]],
        is_canonical: bool,
    ) -> bytes:
        if not is_canonical:
            out = sb.i32(key_group)
            for number, one, value in entries:
                count = 1 if not self._rarely() else self._random.choice(MANY)
                out += number.to_bytes(2, "big") + sb.i32(count) + one[-1:] + one[:-1] + value
            return out
        prefix = self._prefix(key_group, 1 if groups <= 128 else 2)
        by_state: dict[int, list[tuple[bytes, bytes]]] = {}
        for number, one, value in entries:
            by_state.setdefault(number, []).append((prefix + one, value))
        return sb.canonical_key_group(list(by_state.items()))

    def _type(self, depth: int) -> tuple[bytes, Value]:
        """Return the snapshot of a serializer, and what makes bytes of values."""
        if self._rarely(10):
            return self._sql_row()
        kind = self._random.randrange(4 if depth <= 0 else 10)
        if kind < 2:
            return sb.simple("String"), self._text
        if kind < 4:
            return sb.simple("Long"), lambda: sb.i64(self._random.choice(EDGES))
        snapshot, value = self._type(depth - 1)
        if kind == 4:
            return sb.list_of(snapshot), lambda: self._counted(value)
        if kind == 5:
            return sb.map_of(snapshot, snapshot), lambda: self._counted(
                lambda: value() + b"\0" + value()
            )
        if kind == 6:
            return sb.ttl_of(snapshot), lambda: sb.i64(1) + value()
        if kind == 7:
            width = self._random.choice((0, 1, 1, 2, 2, 25))
            return sb.tuple_of(*[snapshot] * width), lambda: value() * width
        if kind == 8:
            fields: dict[str, bytes | None] = {"a": snapshot, "b": snapshot}
            return sb.pojo_of("Pojo", fields), lambda: b"\2" + (b"\0" + value()) * 2
        return self._kryo()

    def _element(self) -> tuple[bytes, Value]:
        """Return the type of an element of operator state: a sink's, a consumer's, or any."""
        kind = self._random.randrange(4)
        if kind == 0:
            return self._two_phase()
        if kind == 1:
            java_class = self._random.choice((KAFKA, KINESIS))
            shard = sb.pojo_of("Shard", dict.fromkeys(("streamName", "shardId"), _STRING))
            first, second = (
                (_kryo_of(java_class), sb.simple("Long")),
                (shard, _kryo_of(java_class)),
            )
            parts = first if java_class == KAFKA else second
            return sb.tuple_of(*parts), lambda: self._of_consumer(java_class)
        return self._type(2)

    def _of_consumer(self, java_class: str) -> bytes:
        number = self._random.choice((b"\2", b"\0", b"\xff\xff\xff\xff\x0f"))
        head, text = self._class(java_class) + b"\1" + number, b"\1" + self._kryo_text()
        if java_class == KAFKA:
            return head + number + text + sb.i64(self._random.choice(EDGES))
        return b"\2" + (b"\0" + self._text()) * 2 + head + text + number

    def _two_phase(self) -> tuple[bytes, Value]:
        """Return the state of a sink of two phases, of each outer version, and of none."""
        snapshot, value = self._type(1)
        version = self._random.randrange(6)
        sinks = "org.apache.flink.streaming.api.functions.sink."
        name = f"{sinks}TwoPhaseCommitSinkFunction$StateSerializerSnapshot"
        outer = self._random.choice((b"\0", b"\1")) if version == 4 else b""
        mark = b"\0" if version > 2 else b""

        def state() -> bytes:
            holder = value() + sb.i64(5)
            return mark + holder + self._counted(lambda: holder) + b"\1" + value()

        return sb.composite(name, version, [snapshot, snapshot], outer), state

    def _kryo(self) -> tuple[bytes, Value]:
        """Return bytes of Kryo: of a class that is described, of one that is not, or of any."""
        name = self._random.choice(("Kryo", "a.B", "a.E", "a.F", "java.lang.Object", *LISTS))
        return _kryo_of(name), lambda: self._class(name) + self._object(name, 4)

    def _class(self, name: str) -> bytes:
        """Return the mark of a class by its name, which is mostly the first, or of an earlier."""
        if self._rarely(8):
            return self._random.choice((b"\0", b"\1\0", b"\1\1", b"\2", b"\3", b"\x57"))
        text = name[:-1].encode() + bytes([ord(name[-1]) | 0x80])
        return b"\1" + bytes([self._random.choice((0, 0, 1, 2))]) + text

    def _object(self, name: str, depth: int) -> bytes:
        """Return an object, one that was there before, or null."""
        if self._rarely(6) or depth <= 0:
            return bytes([self._random.choice((0, 2, 2, 3, 4, 9))])
        count = self._random.choice((1, 1, 2, 5, 40, 255))
        if name in LISTS:
            parts = b"".join(self._any(depth - 2) for _ in range(min(count, 5)))
            return b"\1" + bytes([count & 0x7F]) + parts + bytes(self._count(0, 40))
        if name == "a.F":
            return b"\1" + b"".join(self._object("a.F", depth - 1) for _ in range(2))
        if name != "a.B":
            return b"\1" + bytes([count])
        fields = [self._any(depth - 1), b"\1\1", self._any(depth - 1), self._any(depth - 1)]
        return b"\1" + b"".join([*fields, b"\5", self._any(depth - 1)])

    def _any(self, depth: int) -> bytes:
        name = self._random.choice(("a.B", "a.F", *LISTS))
        if self._rarely(3):
            return self._class("java.lang.String") + b"\1" + self._kryo_text()
        return self._class(name) + self._object(name, depth)

    def _kryo_text(self) -> bytes:
        return self._random.choice((b"a\xe2", b"\x81", b"\x80", b"\x82a", b"\xbf" + bytes(62)))

    def _counted(self, value: Value) -> bytes:
        count = self._random.choice((0, 1, 3, 30))
        text = count if not self._rarely() else self._random.choice(MANY)
        return sb.i32(text) + value() * count

    def _text(self) -> bytes:
        text = self._random.choice(("", "a", "user-1", "x" * 100))
        return bytes([len(text) + 1]) + text.encode()

    def _sql_row(self) -> tuple[bytes, Value]:
        width = self._random.choice((1, 1, 2))
        types = b"".join(jb.stream(self._java(6)) for _ in range(width))
        name = f"{sb.TABLE}RowDataSerializer$RowDataSerializerSnapshot"
        snapshot = sb.snapshot(name, 3, sb.i32(width) + types + sb.nested([]))

        def row() -> bytes:
            # Each field says that it is the rest of the row, in which the same stands again.
            body = b""
            for _ in range(self._count(0, 3)):
                count = self._random.choice((0, 1, 3, 40))
                place = struct.pack("<II", len(body), 8 * (count + 1))
                body = struct.pack("<iI", count, 0) + place * count + body
            head = bytes(8) + struct.pack("<II", len(body), 8 + 8 * width) * width
            return sb.i32(len(head + body)) + self._damaged(head + body)

        return snapshot, row

    def _java(self, depth: int) -> bytes:
        """Return a logical type, or what has some of its fields."""
        kind = self._random.randrange(9)
        if kind < 3 or not depth:
            name = self._random.choice(("BIGINT", "INTEGER", "BOOLEAN", "DOUBLE", "DATE"))
            return jb.logical_type(name)
        if kind < 5:
            numbers = (38, 38, 2, 0, 2**31 - 1) if self._rarely(4) else (38, 2)
            precision, scale = sorted(self._random.choice(numbers) for _ in range(2))[::-1]
            return jb.logical_type("DECIMAL", ("precision", precision), ("scale", scale))
        root = jb.enum("org.apache.flink.table.types.logical.LogicalTypeRoot", "ARRAY")
        earlier = b"\x71" + sb.i32(0x7E0000 + self._count(0, 8))  # an object that was there
        element = self._choice(lambda: self._java(depth - 1), lambda: earlier)
        if kind < 7:
            return jb.instance("Array", [("L", "elementType", element), ("L", "typeRoot", root)])
        root = jb.enum("org.apache.flink.table.types.logical.LogicalTypeRoot", "ROW")
        field = jb.instance("Field", [("L", "type", element)])
        again = b"\x71" + sb.i32(0x7E0000 + self._count(0, 12))
        fields = jb.instance(
            "List",
            [("L", "list", again)],
            flags=3,
            after=field * self._count(1, 3) + again + jb.END,
        )
        return jb.instance("Row", [("L", "fields", fields), ("L", "typeRoot", root)])


_STRING = sb.simple("String")


def _kryo_of(java_class: str) -> bytes:
    contents = sb.utf(java_class) + sb.optional_map({}) * 3
    return sb.snapshot(f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, contents)
