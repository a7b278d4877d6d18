"""Damaged log directories."""
