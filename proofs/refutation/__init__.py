"""Counterexamples: to induction, on small states that are replayed in Python, and as runs from the start."""
