"""A release of Apache Kafka under test: its jars, its message schemas, its process, and connections to it."""
