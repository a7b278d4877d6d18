"""The system's number (inode) of a connection between two ports of this machine (Linux).

The system is asked for the one connection, by `sock_diag`. Its tables of all connections, in `/proc`, take long to read on a
machine that has many; they are read where it does not answer.
"""

import os
import socket
import struct
from functools import cache
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, REQUEST = 4, 20, 1
ANY_STATE, NO_COOKIE = 0xFFFFFFFF, b"\xff" * 8
HEADER, INODE_AT = struct.Struct("=IHHII"), 84
"""The header of a message, and where the inode is in an answer (`struct inet_diag_msg`)."""

LOOPBACK = socket.inet_aton("127.0.0.1").ljust(16, b"\0")


def inode_of(local_port: int, remote_port: int) -> int | None:
    """The inode of the end that has the local port; none, if the connection is over."""
    return _asked(local_port, remote_port) if answers() else in_tables(local_port, remote_port)


@cache
def answers() -> bool:
    """Whether the system answers for single connections: it is asked for one that is there."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        ports = client.getsockname()[1], server.getsockname()[1]
        try:
            return _asked(*ports) == os.fstat(client.fileno()).st_ino
        except OSError:
            return False


def _asked(local_port: int, remote_port: int) -> int | None:
    about = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, ANY_STATE)
    ends = struct.pack("!HH", local_port, remote_port) + LOOPBACK + LOOPBACK + struct.pack("=I", 0) + NO_COOKIE
    size = HEADER.size + len(about) + len(ends)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as system:
        system.settimeout(1.0)
        system.send(HEADER.pack(size, SOCK_DIAG_BY_FAMILY, REQUEST, 1, 0) + about + ends)
        answer = system.recv(4096)
    if HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:
        return None
    inode: int = struct.unpack_from("=I", answer, INODE_AT)[0]
    return inode or None


def in_tables(local_port: int, remote_port: int) -> int | None:
    """The same from the tables of all connections."""
    wanted = f":{local_port:04X}", f":{remote_port:04X}"
    for table in TABLES:
        for line in table.read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(wanted[0]) and fields[2].endswith(wanted[1]):
                return int(fields[9])
    return None
