"""Readers of columns: each takes the bytes of many values at once and returns an Arrow array."""
