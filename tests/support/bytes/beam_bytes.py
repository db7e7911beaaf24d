"""Snapshots of the serializers of Apache Beam's runner.

Beam: CoderTypeSerializer.LegacySnapshot, UnversionedTypeSerializerSnapshot.
"""

from __future__ import annotations

from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb

BEAM = "org.apache.beam.runners.flink.translation."
LEGACY = f"{BEAM}types.CoderTypeSerializer$LegacySnapshot"
UNVERSIONED = f"{BEAM}types.UnversionedTypeSerializerSnapshot"
OF_KEYS = f"{BEAM}wrappers.streaming.FlinkKeyUtils$ByteBufferCoder"
CODERS = "org.apache.beam.sdk.coders."
TIMER = "org.apache.beam.runners.core.TimerInternals$TimerDataCoderV2"


def stream(coder: bytes) -> bytes:
    """Return a serializer with that coder, as a Java object."""
    fields = [("Z", "fasterCopy", b"\0"), ("L", "coder", coder)]
    return java.stream(java.instance(f"{BEAM}types.CoderTypeSerializer", fields))


def beam_snapshot(data: bytes, *, is_legacy: bool = True) -> bytes:
    """Return the snapshot of a serializer that is such an object."""
    if not is_legacy:
        return sb.snapshot(UNVERSIONED, 1, sb.i32(len(data)) + data)
    return sb.snapshot(LEGACY, 0x7A53C4F0, sb.i32(1, len(data)) + data + sb.i32(1))
