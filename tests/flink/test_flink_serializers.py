"""Every snapshot of a serializer in Flink's jars: is it known here?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flink_oracle import flink_jar
from java_classes import implementations

from keygroups._serializers.base import REGISTRY

SNAPSHOT = "org.apache.flink.api.common.typeutils.TypeSerializerSnapshot"
NOT_KNOWN = {
    # of Flink 1.x, whose serialize() throws: only savepoints of before 1.8 have it
    "org.apache.flink.cep.nfa.sharedbuffer."
    "SharedBufferNode$SharedBufferNodeSerializer$SharedBufferNodeSerializerSnapshot",
}


@pytest.mark.flink
def test_every_snapshot_is_known(record_property: Callable[[str, object], None]) -> None:
    dist = flink_jar()
    if dist is None:
        pytest.skip("needs Flink's jars")
    jars = [*dist.parent.glob("flink-*.jar"), *dist.parents[1].glob("opt/flink-python*.jar")]
    snapshots = implementations(jars, "org.apache.flink.", SNAPSHOT)
    record_property("snapshots", f"{len(snapshots & set(REGISTRY))} of {len(snapshots)} known")
    assert len(snapshots) > 80
    assert snapshots - set(REGISTRY) <= NOT_KNOWN
