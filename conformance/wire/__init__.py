"""Level 0: one broker, by wire alone. Cases are drawn from models of one broker, and run against any address."""
