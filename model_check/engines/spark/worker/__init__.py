"""What Spark's worker processes run, and what is sent and stored between them: packed states, messages, files, tables."""
