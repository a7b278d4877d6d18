"""Inductive invariants: what is to be shown of them, and the ways in which it is tried."""
