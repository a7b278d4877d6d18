"""The answer of APIs that return only an error."""

from typing import NamedTuple

from kspec.spec.values import Error


class ErrorResponse(NamedTuple):
    """An answer that has only an error."""

    error: Error
