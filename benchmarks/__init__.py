"""Side-by-side measurements with other model checkers."""
