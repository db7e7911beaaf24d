"""State as it is written: the bytes of entries and elements, in order, in files."""
