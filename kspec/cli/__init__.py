"""The command `kspec`. It alone may import everything: engines, models, proofs."""
