"""Descriptions of the state of Flink SQL's operators, with column names from a plan."""
