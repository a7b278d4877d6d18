"""The operating system's disk."""


class RealDisk:
    """Implements `Disk`. It keeps at most `max_open` files open and opens others again when they are needed."""

    def __init__(self, max_open: int = 0) -> None:
        raise NotImplementedError
