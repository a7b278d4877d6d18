"""Runs of model `kafka`, and where they come from."""
