"""Brokers with a bug that an implementer may make, one each, and the cases that tell them."""
