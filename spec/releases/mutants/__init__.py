"""Mutants of releases: one rule weakened, to show that the rule is needed."""
