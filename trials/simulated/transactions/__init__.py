"""Producers of transactions in a simulated cluster, readers of what is committed, and what must hold for them."""
