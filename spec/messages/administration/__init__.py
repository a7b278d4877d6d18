"""Requests of administrators: create, elect, reassign, unregister."""
