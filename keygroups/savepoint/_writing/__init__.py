"""Savepoints that are new, or those of before with edits: what `SavepointWriter` does."""
