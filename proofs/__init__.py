"""Proofs by Z3 over the functions that the checker explores, for logs and epochs of any length. See `docs/proofs.md`."""
