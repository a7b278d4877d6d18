"""Kafka's replication protocol as pure functions over immutable values. Start with `spec.protocol`."""
