"""Transactions: their coordinator, and what the leader of a partition does about them."""
