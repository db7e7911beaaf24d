"""Bytes read and written: files, streams in them, RocksDB's tables, folders."""
