"""Write java_classes.jsonl: what is above the classes that are read of Kryo's values.

`python tests/vectors/make_java_classes.py JAR JAVA...` asks each JAVA, a program, with the JAR of
Flink's distribution in its class path. Newer ones have interfaces that older ones have not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.inside.serializers import BODIES

FOLDER = Path(__file__).parent
SOURCE = FOLDER.parent / "support" / "flink" / "java" / "ClassesAbove.java"


def main(jar: str, *programs: str) -> None:
    lines: list[dict[str, Any]] = []
    for java in programs:
        command = [java, "-cp", jar, str(SOURCE)]
        names = "\n".join(BODIES)
        answer = subprocess.run(command, input=names, capture_output=True, text=True, check=True)
        version = [java, "-XshowSettings:properties", "-version"]
        output = subprocess.run(version, capture_output=True, text=True, check=True).stderr
        lines.append({"java": output.partition("java.version = ")[2].split()[0]})
        for line in answer.stdout.splitlines():
            name, is_final, above = line.split("\t")
            lines.append({"class": name, "final": is_final == "true", "above": above.split()})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (FOLDER / "java_classes.jsonl").write_text(text, "ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
