"""The power of level 0: rules weakened one by one, and whether a case tells it."""
