"""Where bytes come from and go to: files, streams in them, RocksDB's tables, folders."""
