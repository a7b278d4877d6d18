"""Inductive invariants: their obligations, and the strategies that try to prove these."""
