"""The mirror: a real Apache Kafka controller under test, with the specification as all of its brokers."""
