"""Measurements of the site and the explorer on it, in a browser."""
