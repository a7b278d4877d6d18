"""Theorems about the metadata quorum, for any number of voters: its elections, and its logs."""
