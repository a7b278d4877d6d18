"""Cases: chosen runs with all that a reader and a runner need, and as JSON that needs no Python."""
