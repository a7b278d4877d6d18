"""Groups of consumers: their members, and the offsets that they commit."""
