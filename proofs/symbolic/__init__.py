"""Symbolic values, which stand for many: the same rules are called with them, and every path of a rule is followed."""
