"""The keyed state of an operator that is edited: what was asked for, and what does it."""
