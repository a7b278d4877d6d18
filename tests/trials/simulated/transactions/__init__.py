"""Transactions in simulated clusters."""
