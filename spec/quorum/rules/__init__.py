"""The rules of the quorum by subject."""
