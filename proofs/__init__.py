"""Proofs by Z3 over the very functions that the checker explores: logs and epochs of any length. See `docs/proofs.md`."""
