"""Libraries that only some commands need: they come with an extra of the distribution."""

from importlib.util import find_spec


class MissingExtraError(RuntimeError):
    """A library that is not installed."""


def need(libraries: tuple[str, ...], purpose: str, extra: str = "graph") -> None:
    """Make sure that these libraries are there before work begins; `MissingExtraError` says how to get them."""
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        raise MissingExtraError(
            f"{purpose} needs {' and '.join(missing)}; install it with: pip install 'kafka-replication-spec[{extra}]'"
        )
