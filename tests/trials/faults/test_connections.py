"""Numbers of connections: asked for one by one, and in the system's tables."""

import os
import socket
import sys

import pytest

from kspec.trials.faults import connections

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT RUN: /proc and sock_diag are Linux's")


def test_the_inode_of_each_end_of_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        ports = client.getsockname()[1], server.getsockname()[1]
        with accepted:
            expected = os.fstat(client.fileno()).st_ino, os.fstat(accepted.fileno()).st_ino
            assert (connections.inode_of(*ports), connections.inode_of(*reversed(ports))) == expected
            assert (connections.in_tables(*ports), connections.in_tables(*reversed(ports))) == expected


def test_a_socket_of_both_families_is_found() -> None:
    """As Java has them."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_INET6) as client:
        client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        inode = connections.inode_of(client.getsockname()[1], server.getsockname()[1])
        assert inode == os.fstat(client.fileno()).st_ino


def test_where_nobody_answers_the_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "NETLINK_SOCK_DIAG", 31)  # no such service
    connections.answers.cache_clear()
    try:
        assert not connections.answers()
        test_the_inode_of_each_end_of_a_connection()
    finally:
        connections.answers.cache_clear()


def test_no_connection_has_no_inode() -> None:
    assert connections.inode_of(1, 2) is None
