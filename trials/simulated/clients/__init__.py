"""Clients of the simulated cluster: of partitions, of groups, and its operator."""
