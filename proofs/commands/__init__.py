"""The commands: proofs, dependencies between conjuncts, mutants of a theorem, confirmation by another solver."""
