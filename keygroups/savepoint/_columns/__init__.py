"""Columns of Arrow for keyed state: their types, and values to them and back."""
