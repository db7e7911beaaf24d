"""Keyed state of savepoints in Spark: which types its columns have, and how tasks fill them."""
