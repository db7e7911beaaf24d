"""The limits of work and memory, as the pages say them, and those that nothing but memory shows.

A savepoint at one of them takes minutes or gigabytes to make; what is refused beyond a smaller one
is tested where it is refused.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / ".github"
KIB, MIB = 1 << 10, 1 << 20

# Module, the limit's name, how much it is, and the words of SECURITY.md or ARCHITECTURE.md.
SAID = [
    ("_serializers.data_input", "MOST_REPEATED", 256, "at most 256 bytes for each that was read"),
    ("_serializers.data_input", "FREELY_REPEATED", MIB, "for each that was read, and 1 MiB;"),
    ("_serializers.data_input", "LONGEST_NAME", 1_024, "has at most 1,024 characters."),
    ("_serializers.jvm.kryo_input", "_FREELY_REPEATED", 4 * KIB, "of its own, and 4 KiB;"),
    ("_serializers.collections", "_MOST_OF_A_HASH", 100, "of which more than 100 members have"),
    ("savepoint._columns.readers.lists", "_MANY", 100, "of which more than 100 members have"),
    ("savepoint._state.entry_columns", "BYTES", 4 * MIB, "A batch of columns has some 4 MiB,"),
    ("savepoint._state.entry_columns", "_FEW_BYTES", 256 * KIB, "is made of some 256 KiB."),
    ("savepoint._files.sst", "_MAX_SHARING", 256, "share at most 256 times its bytes."),
    ("savepoint._files.found_files", "_MOST", 100_000, "among at most 100,000 files;"),
    ("savepoint._files.store_file", "AHEAD", 32 * MIB, "32 MiB asked ahead of a store"),
    ("savepoint._files.files", "CHUNK", 256 * KIB, "256 KiB of a stream"),
    ("savepoint._state.writing.spill", "_HELD", 64 * MIB, "64 MiB of entries that are sorted"),
    (
        "savepoint._files.compression",
        "_MAX_SMALL",
        16 * MIB,
        "of ZSTD for 1,032 or 16 MiB a block",
    ),
]
# What is held, asked for or tried at once, or bounds what a report has: no page says it.
OTHERS = {
    "savepoint._edits.edit_task": {"_SORTED": 4 * MIB},
    "_serializers.pickles": {"_MOST_INT": 1_024, "_REPEATED": 16, "_FREE": 64},
    "_serializers.big_numbers": {"_BITS_AT_ONCE": 4_096},
    "_serializers.jvm.avro": {"_MAX_EMPTY": 100, "_MAX_JSON_DEPTH": 200},
    "_serializers.jvm.java_util": {"_MAX_DEPTH": 100},
    "_serializers.jvm.objects": {"_MAX_DEPTH": 100},
    "_serializers.sql.java_types": {"_MAX_DEPTH": 100, "_MAX_WRAPPERS": 10, "_NAMES": 64},
    "_values.bitmaps": {"_FEW": 4, "_MOST": 1 << 16},
    "arrays._blocks": {"_BLOCK_BYTES": 2 * MIB},
    "arrays._inputs": {"_MOST_BYTES": 2_147_483_647, "_ROWS": 16_384},
    "arrays._kernels": {"BLOCK": 32_768, "_DOUBLES": 16_384, "_MOST_KEPT": MIB},
    "arrays._scalars": {"_MOST_SECONDS": 86_400 << 31},
    "arrays._skew": {"_AT_ONCE": MIB, "_MOST_RECORDS": 1 << 62},
    "arrays._sql_rows": {"_LONG": 2_048},
    "arrays._text": {"_ROWS": 16_384},
    "arrays._utf8": {"LONGEST": 128},
    "savepoint._columns.batch_sorter": {
        "_WRITTEN": 256 * KIB,
        "_MOST_READ": 4,
        "_READ": 32,
        "_PARTS": 32,
        "_LEAST_PARTS": 8,
        "_ROWS": 4_096,
    },
    "savepoint._columns.byte_arrays": {"_LONGEST_RECORD": 64 * KIB},
    "savepoint._columns.column_encoder": {"_PAIRS": 8_192},
    "savepoint._columns.entry_order": {"_MOST_WORDS": 64, "_MORE_WORDS": 8, "_AT_ONCE": 16_384},
    "savepoint._columns.table_rows": {"_ROWS": 4_096, "_AT_ONCE": 16_384},
    "savepoint._comparison.difference_columns": {"_ROWS": 4_096, "_BYTES": 4 * MIB},
    "savepoint._files.feed": {"_UNCOUNTED": 64 * KIB},
    "savepoint._files.job_folders": {"_MOST": 1_000, "_SHOWN": 10},
    "savepoint._files.found_files": {"_OF_A_NAME": 3, "_ASKED": 10, "_SHOWN": 600},
    "savepoint._files.sst": {"TAIL": 64 * KIB, "_AHEAD": 16, "_HELD": 4_096},
    "savepoint._files.store_file": {
        "REQUEST": 2 * MIB,
        "_LARGEST": 8 * MIB,
        "_LEAST": 128 * KIB,
        "_SMALL": 64 * KIB,
        "_GAP": 64 * KIB,
        "_LISTED": 32,
    },
    "savepoint._jobs.entry_pieces": {"_PIECE": 8_192},
    "savepoint._jobs.questions": {"_KEYS": 1_024},
    "savepoint._metadata.reader": {"MOST_KEY_GROUPS": 32_768, "_MAX_NESTING": 10},
    "savepoint._state.entry_columns": {
        "ROWS": 16_384,
        "MOST": 2_147_483_648,
        "_LONG_NAME": 128,
        "_OVERHEAD": 256,
        "_COPIES": 4,
        "_SCANNED": 4_096,
        "_LEAST_RUN": 16,
        "_LEAST_CHAIN": 64,
    },
    "savepoint._state.formats.key_group_streams": {"_MOST_SOUGHT": 32},
    "savepoint._state.operator_state": {"_CHUNK": 64 * KIB, "_LEAST_CHUNK": 2_048},
    "savepoint._state.writing.spill": {
        "_OF_AN_ENTRY": 200,
        "_MOST_RUNS": 128,
        "_BUFFERED": 64 * KIB,
        "_COUNTED": 4_096,
    },
    "savepoint._tasks.read": {"TASK_BYTES": 16 * MIB},
    "savepoint._verification.faults": {"EXAMPLES": 5, "_MOST_LEFT_OUT": 50, "_LONGEST": 100},
    "savepoint._verification.task": {"_MOST_TRIES": 512},
}
OF_COLUMNS = ("arrays.", "savepoint._columns.", "_columns", "savepoint._jobs.entry")


def limit(module: str, name: str) -> int:
    if any(module.startswith(start) or module.endswith(start) for start in OF_COLUMNS):
        pytest.importorskip("pyarrow")
    found: int = getattr(import_module(f"keygroups.{module}"), name)
    return found


@pytest.mark.parametrize(("module", "name", "most", "words"), SAID)
def test_limits_that_the_pages_say(module: str, name: str, most: int, words: str) -> None:
    assert limit(module, name) == most
    if PAGES.is_dir():  # A package of the sources has none.
        pages = (PAGES / "SECURITY.md", PAGES / "ARCHITECTURE.md")
        texts = [" ".join(page.read_text("utf-8").split()) for page in pages]
        assert any(words in text for text in texts)


@pytest.mark.parametrize("module", OTHERS)
def test_limits_of_what_is_done_at_once(module: str) -> None:
    for name, most in OTHERS[module].items():
        assert limit(module, name) == most, name


def test_ratios_of_compression() -> None:
    """What a byte of each codec stands for at most, as its format has it."""
    ratios = import_module("keygroups.savepoint._files.compression")._MAX_RATIO
    assert ratios == {"Snappy": 64, "zlib": 1_032, "LZ4": 255, "LZ4HC": 255, "ZSTD": 1_032}
