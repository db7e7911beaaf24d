"""The open work of a job's sinks: transactions and files that a restore commits."""
