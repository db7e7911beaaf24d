"""Flink's TypeSerializers: how values and snapshots are read and written."""
