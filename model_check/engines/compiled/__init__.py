"""The compiled engine: a rule is evaluated once for each local input, and compiled loops search on integers."""

import gc

# Importing numba makes half a million objects that all stay: garbage collection among them takes a tenth of the time.
_collecting = gc.isenabled()
gc.disable()
try:
    from kspec.model_check.engines.compiled.search import explore
finally:
    if _collecting:
        gc.enable()

__all__ = ["explore"]
