"""The compiled engine: a rule is asked once for each local input, and the search is integer work in compiled loops."""

from model_check.compiled.engine import explore

__all__ = ["explore"]
