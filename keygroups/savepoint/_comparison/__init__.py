"""Comparison of two savepoints: what is equal, what differs, what only one of them has."""
