"""The code of Spark's worker processes, and what is sent and stored between them: packed states, messages, files, tables."""
