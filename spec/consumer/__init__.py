"""A consumer as a member of its group, classic protocol: what it asks, what it owns, what it makes of answers."""
