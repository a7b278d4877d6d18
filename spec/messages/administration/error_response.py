"""The answer of APIs that say only whether it was done."""

from typing import NamedTuple

from spec.values import Error


class ErrorResponse(NamedTuple):
    """An answer that says only whether it was done."""

    error: Error
