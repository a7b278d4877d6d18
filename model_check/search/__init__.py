"""Searches through anything: shortest ways, runs that cover goals, shrinking."""
