"""Kinds of faults in simulated clusters: a class for each, by what it happens to."""
