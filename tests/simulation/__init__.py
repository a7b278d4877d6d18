"""Brokers and controller driven message by message, at random, and looked at after each move: docs/simulated-cluster.md."""
