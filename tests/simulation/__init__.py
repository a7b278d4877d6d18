"""Brokers and controller driven message by message, at random, and looked at after every move: see docs/simulated-cluster.md."""
