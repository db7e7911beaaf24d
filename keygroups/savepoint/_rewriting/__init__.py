"""Savepoints written anew: for another max parallelism, as canonical ones, in another place."""
