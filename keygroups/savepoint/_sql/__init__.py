"""What the operators of Flink SQL keep in which state, and how a plan names its columns."""
