"""Local clusters of the Flinks that are here, in which jobs are restored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from flink_oracle import flink_jar
from flink_restores import FlinkRestores
from flink_sql import jdk_folder

OTHER_FLINK = "KEYGROUPS_TEST_FLINK_LIB"


@pytest.fixture(scope="session", params=["installed", "other"])
def restores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FlinkRestores]:
    """A cluster of the Flink that is installed; and one of the jars that a variable names.

    KEYGROUPS_TEST_FLINK_LIB is the folder `pyflink/lib` of an apache-flink-libraries of another
    version, such as `pip install --no-deps --target` makes.
    """
    jdk, jar, other = jdk_folder(), flink_jar(), os.environ.get(OTHER_FLINK)
    if jdk is None:
        pytest.skip("no JDK, whose compiler the restored jobs need")
    if request.param == "other":
        lib = Path(other) if other else None
    else:
        lib = jar.parent if jar else None
    if lib is None:
        pytest.skip(f"{request.param} apache-flink-libraries: not here (see {OTHER_FLINK})")
    cluster = FlinkRestores(jdk, lib, tmp_path_factory.mktemp("restores"))
    yield cluster
    cluster.end()
