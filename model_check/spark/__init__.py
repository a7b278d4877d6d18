"""The Spark engine: the compiled engine's tables in every worker process, states in partitions, one shuffle for each level."""
