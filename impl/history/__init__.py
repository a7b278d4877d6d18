"""What clients of a cluster saw, and what of it cannot be: anomalies by the names of Jepsen's Kafka workload."""
