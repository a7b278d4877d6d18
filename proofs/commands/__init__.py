"""What can be run: proofs, what rests on what, mutants of a theorem, confirmation by another solver."""
