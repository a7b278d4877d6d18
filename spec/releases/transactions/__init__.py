"""The history of transactions in Kafka, and the mutants of their rules."""
