"""Which streams of bytes a savepoint has: its file `_metadata`, read and written."""
