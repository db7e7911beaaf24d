"""The file `_metadata`, read and written: it names a savepoint's streams of bytes."""
