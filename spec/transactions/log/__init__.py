"""Transactions in the log of one partition: at its leader and its followers, and for those who read it."""
