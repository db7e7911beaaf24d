"""What a job's sinks have open: transactions and files that a restore commits."""
