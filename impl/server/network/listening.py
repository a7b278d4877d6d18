"""The socket that a process listens on.

It is made before the process loads anything else. A client that connects meanwhile waits as long as the start takes; one
that is refused waits before it tries again, librdkafka up to a second.
"""

import socket

from kspec.impl.config.listeners import Listener
from kspec.impl.config.properties import ConfigError


def bind(listener: Listener, backlog: int) -> socket.socket:
    """A socket that listens at an address. Raises: `ConfigError`.

    Clients can connect from now on. Their requests wait until their connections are accepted.
    """
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((listener.host, listener.port))
    except OSError as error:
        sock.close()
        raise ConfigError(f"cannot listen on {listener.host}:{listener.port}: {error.strerror or error}") from error
    sock.listen(backlog)
    sock.setblocking(False)
    return sock
