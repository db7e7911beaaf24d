"""What the table of `help(keygroups.savepoint)` promises: a test shows each of it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import keygroups.savepoint

TESTS = Path(__file__).parents[1]
SHOWN: dict[str, tuple[str, ...]] = {
    "list operators, parallelisms, sizes": (
        "core/test_savepoint_points.py::test_metadata",
        "core/test_savepoint_points.py::test_sizes_add_up",
        "core/test_savepoint_command.py::test_heaviest_key_groups",
    ),
    "read keyed state, types not declared": ("core/test_savepoint_points.py::test_entries",),
    "read all kinds of keyed state": (
        "core/test_savepoint_points.py::test_entries",
        "core/test_job_points.py::test_entries",
    ),
    "read SQL rows": ("core/test_job_points.py::test_entries",),
    "read POJOs": ("core/test_job_values.py::test_a_pojo_is_a_value",),
    "read Avro and Kryo's values": (
        "core/test_job_values.py::test_values_of_avro",
        "core/test_job_values.py::test_values_of_kryo",
    ),
    "read windows and timers": ("core/test_savepoint_points.py::test_entries",),
    "read list, union, broadcast state": ("core/test_savepoint_points.py::test_operator_state",),
    "read splits and their coordinator": (
        "core/test_sources.py::test_splits_of_files",
        "core/test_sources.py::test_all_versions_of_the_enumerator",
        "core/test_sources.py::test_a_source_of_flink",
    ),
    "read times of last access": ("core/test_savepoint_points.py::test_entries",),
    "read some keys alone": (
        "core/test_lookup.py::test_keys_of_savepoints",
        "core/test_lookup.py::test_blocks_of_rocksdb_without_the_key_are_left_out",
    ),
    "find damage, misplaced keys, leaks": (
        "core/test_verify.py::test_a_file_that_is_gone_or_cut",
        "core/test_verify.py::test_a_key_in_a_foreign_key_group",
        "core/test_verify.py::test_windows_and_timers",
    ),
    "changes between two savepoints": ("core/test_compare.py::test_real_points",),
    "whether a job restores it, and why": (
        "core/test_compatibility.py::test_verdicts_are_those_of_flink",
    ),
    "new savepoint from rows": (
        "flink/test_flink_written_savepoints.py::test_flink_finds_what_was_written",
        "spark/test_spark_write_savepoint.py::test_every_kind_of_state_is_written_as_by_the_core",
    ),
    "... times of last access": (
        "core/test_savepoint_refused_entries.py::test_times_of_last_access",
        "spark/test_spark_write_savepoint.py::test_times_to_live_are_written_as_by_the_core",
    ),
    "... AGGREGATING": ("core/test_entry_encoder.py::test_entries_of_all_points",),
    "... timers": ("core/test_windows.py::test_timers_of_flink",),
    "... windows, sessions, count windows": ("core/test_windows.py::test_windows_of_flink",),
    "... list, union, broadcast state": (
        "core/test_operator_state_writer.py::test_streams_of_flink",
        "flink/test_flink_operator_state.py::test_flink_finds_the_operator_state",
    ),
    "... Kafka's offsets": (
        "core/test_sources.py::test_both_halves_are_written",
        "flink/test_flink_operator_state.py::test_a_source_goes_on_at_the_offsets",
        "spark/test_spark_edit_savepoint.py"
        "::test_offsets_of_a_dataframe_are_where_the_source_goes_on",
    ),
    "... keys: dates, BIG_DEC, BIG_INT": (
        "spark/test_spark_write_savepoint.py::test_every_key_type_is_written_as_by_the_core",
        "core/test_savepoint_writer.py::test_values_of_flink",
    ),
    "... SQL keys and rows": (
        "core/test_sql_values.py::test_snapshots_made_of_nested_rows",
        "flink/test_flink_sql_bootstrap.py::test_sql_state_of_types_alone",
    ),
    "... for the ids of a SQL job": (
        "core/test_savepoint_template.py::test_the_state_of_sql_jobs_from_its_values",
        "flink/test_flink_sql_bootstrap.py::test_sql_jobs_go_on",
    ),
    "keep the rest of a savepoint": (
        "core/test_savepoint_editor.py::test_an_edit_that_changes_nothing_gives_the_same_bytes",
        "flink/test_flink_edits.py::test_flink_finds_what_an_edit_leaves",
    ),
    "drop an operator": ("core/test_savepoint_editor.py::test_an_operator_is_removed",),
    "rename a uid, give one": ("core/test_savepoint_editor.py::test_operators_get_other_uids",),
    "add an operator, merge two jobs": (
        "core/test_savepoint_editor.py::test_operators_of_another_job",
    ),
    "drop or rename a state": (
        "core/test_edit_keyed_state.py::test_against_a_model",
        "core/test_savepoint_editor.py::test_keyed_state_and_names_are_edited_together",
    ),
    "delete keys": (
        "core/test_edit_keyed_state.py::test_delete_keys",
        "core/test_savepoint_command.py::test_keys_are_deleted",
        "flink/test_flink_job_points.py::test_flink_finds_what_deleted_keys_leave",
    ),
    "map entries, fix a poisoned one": (
        "core/test_edit_keyed_state.py::test_against_a_model",
        "flink/test_flink_edits.py::test_flink_finds_what_an_edit_leaves",
    ),
    "TTL on, off, set anew": (
        "core/test_edit_keyed_state.py::test_restamped",
        "flink/test_flink_edits.py::test_a_job_has_the_new_times_to_live",
    ),
    "values of another type or class": (
        "core/test_convert_state.py::test_pojos_of_another_package",
    ),
    "give the state of a key to another": (
        "core/test_edit_keyed_state.py::test_entries_that_move",
    ),
    "another type of keys": (
        "core/test_map_keys.py::test_against_a_model",
        "core/test_map_keys.py::test_there_and_back",
        "core/test_map_keys.py::test_headers_are_those_of_flink",
    ),
    "edit operator state": (
        "core/test_operator_state_edits.py::test_elements_are_mapped",
        "core/test_operator_state_edits.py::test_a_state_is_renamed",
    ),
    "rows read, changed, written back": (
        "spark/test_spark_round_trip.py"
        "::test_rows_as_they_were_read_are_the_entries_that_were_there",
    ),
    "edit on executors": (
        "spark/test_spark_edit_savepoint.py::test_it_writes_what_the_local_one_writes",
    ),
    "change max parallelism": (
        "core/test_savepoint_rewrite.py::test_max_parallelisms",
        "flink/test_flink_max_parallelism.py::test_flink_finds_all_of_a_point",
    ),
    "relocate a checkpoint": ("core/test_savepoint_relocate.py::test_real_checkpoints",),
    "without a JVM and the job's classes": (
        "core/test_architecture.py::test_the_core_stands_alone",
    ),
}


def table() -> dict[str, list[str]]:
    """Return the rows of the table: a capability, then what each of three does."""
    text = keygroups.savepoint.__doc__ or ""
    rows = re.search(r"^    capability .*\n((?:    .+\n)+)", text, re.MULTILINE)
    assert rows is not None
    cells = [re.split(r"\s{2,}", line.strip()) for line in rows[1].splitlines()]
    assert {len(row) for row in cells} == {4}
    by_name = {name: row for name, *row in cells}
    assert len(by_name) == len(cells)
    return by_name


def test_each_yes_is_shown() -> None:
    assert [name for name, row in table().items() if row[0].startswith("yes")] == [*SHOWN]


@pytest.mark.parametrize("name", SHOWN)
def test_what_shows_it_is_there(name: str) -> None:
    for test in SHOWN[name]:
        path, _, function = test.partition("::")
        assert function in functions_of(path), test


@cache
def functions_of(path: str) -> set[str]:
    module = ast.parse((TESTS / path).read_text("utf-8"))
    return {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
