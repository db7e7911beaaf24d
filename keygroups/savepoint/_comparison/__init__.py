"""Comparison of two savepoints: entries that are equal, that differ, and that only one has."""
