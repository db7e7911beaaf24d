"""Work on keyed state in parts, on Spark's executors or any others: read, edited, written."""
