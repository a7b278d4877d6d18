"""Clients of simulated clusters."""
