"""Windows of a job that are written: which ones there are, and all that Flink keeps of one."""
