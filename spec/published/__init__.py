"""What only the six published TLA+ models do. No broker runs anything in here."""
