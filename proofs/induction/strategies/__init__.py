"""Strategies that try claims: each either proves a claim or fails to, within the same effort."""
