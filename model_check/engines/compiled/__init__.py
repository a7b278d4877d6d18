"""The compiled engine: a rule is asked once for each local input, and the search is integer work in compiled loops."""

import gc

# Importing numba makes half a million objects, and all stay: looking for garbage among them takes a tenth of the time.
_collecting = gc.isenabled()
gc.disable()
try:
    from model_check.engines.compiled.search import explore
finally:
    if _collecting:
        gc.enable()

__all__ = ["explore"]
