"""Histories of a cluster's clients, and their anomalies, by the names of Jepsen's Kafka workload."""
