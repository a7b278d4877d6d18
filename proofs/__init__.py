"""Proofs by Z3 over the functions that the checker explores, for logs and epochs of any length. See `docs/proofs.md`."""

if __name__ != "kspec.proofs":
    raise ImportError("import kspec.proofs instead: imported as proofs, each class would be there twice")
