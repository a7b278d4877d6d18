"""The rules of the KRaft controller, by subject."""
