"""Transactions: their coordinator, the logs of partitions, and the offsets of groups."""
