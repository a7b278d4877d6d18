"""Theorems about the metadata quorum, for any number of voters: its elections, its logs, and changes of its voters."""
