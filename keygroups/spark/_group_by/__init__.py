"""The life of keyed state: aggregates, their retention, and where a key's state is put."""
