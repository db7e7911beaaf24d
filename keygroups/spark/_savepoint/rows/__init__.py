"""State in columns of Spark: their types, the rows of states, and the entries these become."""
