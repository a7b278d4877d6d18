"""Runs of model `transactions` on one unmodified broker of Apache Kafka, which coordinates, and leads all partitions."""
