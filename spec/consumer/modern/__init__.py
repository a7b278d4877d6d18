"""A consumer as a member of a consumer group (KIP-848): it lives by heartbeats, and reconciles to what they assign."""
