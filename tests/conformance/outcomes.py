"""Errors of a component: a vector cannot be replayed, or does not hold."""


class UnsupportedError(Exception):
    """A vector asks for something that no component here does."""


class MismatchError(Exception):
    """A component does not do what a vector expects."""
