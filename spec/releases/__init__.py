"""Kafka's history as data: each release is a record of rules, and the difference of two records shows what a KIP changed."""
