"""Positions of a job's sources: their splits, and the state of the coordinator."""
