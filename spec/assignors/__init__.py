"""Assignors: which of a group's members reads which partitions, at the clients (classic groups) and at the coordinator."""
