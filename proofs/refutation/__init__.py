"""Counterexamples: to induction, from small states and replayed in Python; and as runs from the initial state."""
