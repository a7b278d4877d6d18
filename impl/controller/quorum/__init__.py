"""A controller as a voter of the metadata log: its messages, and what it stores, waits for and asks."""
