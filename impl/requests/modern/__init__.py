"""Requests of consumer groups (KIP-848)."""
