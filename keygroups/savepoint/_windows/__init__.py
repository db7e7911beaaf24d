"""Windows of a job for a savepoint: their assigners, and a writer of all Flink keeps of one."""
