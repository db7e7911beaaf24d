"""Write verdicts-<version>.jsonl.gz: what Flink says of pairs of serializers, old and new.

`python tests/vectors/make_verdicts.py JAR` asks the classes of Flink that are beside its
distribution; it needs a JDK. `../support/flink/java/Verdicts.java` says how a type is written.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from support.flink.evolved_types import verdicts
from support.flink.flink_oracle import flink_version

FOLDER = Path(__file__).parent


def main(jar: str) -> None:
    version = flink_version(Path(jar))
    lines = [{"flink": version}, *verdicts(Path(jar))]
    made = "".join(f"{json.dumps(line)}\n" for line in lines)
    file = FOLDER / f"verdicts-{version}.jsonl.gz"
    file.write_bytes(gzip.compress(made.encode("ascii"), mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
