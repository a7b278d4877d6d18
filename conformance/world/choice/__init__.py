"""Runs to replay: those that cover what a broker can do, those that tell a weakened rule, and random ones."""
