"""The costs of a broker."""
