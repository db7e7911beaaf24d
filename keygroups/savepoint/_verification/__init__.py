"""Verification that all of a savepoint is there, undamaged, and where Flink looks for it."""
