"""A run as a file, and a file as a run."""
