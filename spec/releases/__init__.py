"""Kafka's history as data: each release is a record of rules, so what a KIP changed is the difference of two records."""
