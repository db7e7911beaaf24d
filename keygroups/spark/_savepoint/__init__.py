"""Savepoints on executors: read, written, edited and compared in tasks."""
