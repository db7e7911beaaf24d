"""Two examples of each command, below its help."""

from __future__ import annotations

EXAMPLES = {
    "trace": (
        "keygroups trace user-17 -m 128 -p 24",
        "keygroups trace \"('ann', 5)\" -m 128 -p 24 --type 'TUPLE(STRING, LONG)'",
    ),
    "plan": ("keygroups plan 128 24 36", "keygroups plan 128 24 36 --load weights.csv --json"),
    "range": ("keygroups range 128 24 17", "keygroups range 720 --key-groups 144 179"),
    "where": ("keygroups where 91 128 24", "keygroups where 91 128"),
    "explain": (
        "keygroups explain 'Key group 91 is not in KeyGroupRange{startKeyGroup=0, "
        "endKeyGroup=63}. Unless you are directly using low level state access APIs, this is most "
        "likely caused by non-deterministic shuffle key (hashCode and equals implementation).'",
        "keygroups explain - < exception.txt",
    ),
    "default": ("keygroups default 24", "keygroups default 24 --json"),
    "keys": ("keygroups keys 128 24", "keygroups keys 128 24 --type STRING --prefix user- -n 3"),
    "evenness": ("keygroups evenness 720", "keygroups evenness 720 --json"),
    "counts": ("keygroups counts 128 counts.csv", "keygroups counts 128 - < metrics.txt"),
    "suggest": ("keygroups suggest 6 8 10-24", "keygroups suggest 24 --growth 10"),
    "doctor": (
        "keygroups doctor http://localhost:8081",
        "keygroups doctor savepoint-5 --against savepoint-4",
    ),
    "savepoint": (
        "keygroups savepoint s3://bucket/savepoint-5 --operator by-user",
        "keygroups savepoint savepoint-5 --operator by-user --state count --export - | jq .value",
    ),
    "verify": ("keygroups verify savepoint-5", "keygroups verify savepoint-5 --operator by-user"),
    "diff": ("keygroups diff chk-7 chk-8", "keygroups diff chk-7 chk-8 --exit-code --json"),
    "restore": (
        "keygroups restore savepoint-5 test-run/savepoint-1",
        "keygroups restore savepoint-5 test-run/savepoint-1 --json | jq .restores",
    ),
    "job": (
        "keygroups job http://localhost:8081",
        "keygroups job http://localhost:8081 --vertex by-user --watch 30",
    ),
    "files": ("keygroups files checkpoints/chk-7", "keygroups files checkpoints --older-than 48"),
    "completion": (
        "keygroups completion bash >> ~/.bashrc",
        "keygroups completion fish > ~/.config/fish/completions/keygroups.fish",
    ),
}


def examples_of(command: str) -> str:
    """Return the text below a command's help."""
    return "\n".join(["examples:", *(f"  {line}" for line in EXAMPLES[command])])
