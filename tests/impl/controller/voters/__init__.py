"""Voters of the metadata log that change (KIP-853)."""
