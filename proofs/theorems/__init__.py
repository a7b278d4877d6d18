"""The theorems by name."""
