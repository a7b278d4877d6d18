"""Runs of the models that become cases: the fewest shortest ones that reach every kind of answer to every request."""
