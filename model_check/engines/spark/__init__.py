"""The Spark engine: the compiled engine's tables in every worker process, and one shuffle for each level."""
