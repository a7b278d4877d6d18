"""Targets that are no brokers: one clear line and exit status 3, within the time limit."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conformance.wire.targets import Kspec, kspec

pytestmark = pytest.mark.slow

Serve = Callable[[socket.socket], None]


def closes_at_once(client: socket.socket) -> None:
    """Takes a connection and closes it."""


def answers_garbage(client: socket.socket) -> None:
    client.recv(1000)
    client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def answers_an_empty_frame(client: socket.socket) -> None:
    client.recv(1000)
    client.sendall(struct.pack(">i", 0))


def answers_another_request(client: socket.socket) -> None:
    client.recv(1000)
    client.sendall(struct.pack(">iihi", 10, 4711, 0, 0))


def answers_less_than_it_says(client: socket.socket) -> None:
    client.recv(1000)
    client.sendall(struct.pack(">iihi", 10, 1, 0, 7))
    time.sleep(1)


def announces_2_gib(client: socket.socket) -> None:
    client.recv(1000)
    client.sendall(struct.pack(">i", 2**31 - 1))
    time.sleep(1)


def hangs(client: socket.socket) -> None:
    client.recv(1000)
    time.sleep(30)


def dies_after_api_versions(client: socket.socket) -> None:
    """Offers CreateTopics and Metadata, as far as one can tell, and then is gone."""
    client.recv(1000)
    apis = b"".join(struct.pack(">hhh", key, 0, 20) for key in range(70))
    client.sendall(struct.pack(">iihi", 10 + len(apis), 1, 0, 70) + apis)
    time.sleep(0.2)


BAD: dict[Serve, str] = {
    closes_at_once: "it has closed the connection",
    answers_garbage: "it announces an answer of 1213486160 bytes",
    answers_an_empty_frame: "it answers 0 bytes, which are no answer",
    answers_another_request: "it answers with correlation id 4711, not 1",
    answers_less_than_it_says: "an array of 7",
    announces_2_gib: "it announces an answer of 2147483647 bytes",
    hangs: "it does not answer within 1 s",
}


@contextmanager
def listening(serve: Serve, connections: int = 1000) -> Iterator[int]:
    """Something that listens on a port of the loopback; after so many connections it is gone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def work() -> None:
            for _ in range(connections):
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(client,), daemon=True).start()
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

        def answer(client: socket.socket) -> None:
            with client, suppress(OSError):
                serve(client)

        threading.Thread(target=work, daemon=True).start()
        yield listener.getsockname()[1]


def run(port: int, *more: str) -> Kspec:
    return kspec("conformance", "run", "--bootstrap-server", f"127.0.0.1:{port}", "--timeout", "1", *more)


@pytest.mark.parametrize("serve", BAD, ids=lambda one: one.__name__)
def test_a_bad_target_is_one_line_and_status_3(serve: Serve) -> None:
    with listening(serve) as port:
        done = run(port)
    assert done.status == 3
    (line,) = done.err.splitlines()
    assert f"127.0.0.1:{port} is no broker that can be tested: " in line
    assert BAD[serve] in line


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = run(port)
    assert (done.status, len(done.err.splitlines())) == (3, 1)
    assert "it does not take a connection" in done.err


def test_a_dead_target_is_told_before_cases_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with listening(closes_at_once) as port:
        done = run(port, "--case", "frames/alive/alive")
    assert (done.status, len(done.err.splitlines())) == (3, 1)
    assert not list(tmp_path.iterdir())


def test_a_target_that_dies_is_one_line_and_status_3() -> None:
    with listening(dies_after_api_versions, connections=1) as port:
        done = run(port, "--case", "topics/create.slash/invalid-topic-exception")
    assert done.status == 3
    assert "no longer answers after case topics/create.slash/invalid-topic-exception" in done.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--bootstrap-server", "127.0.0.1"), "is no HOST:PORT"),
        (("--bootstrap-server", "127.0.0.1:99999"), "is no HOST:PORT"),
        (("--bootstrap-server", "127.0.0.1:1", "--case", "no/such"), "there is no case 'no/such'"),
        (("--bootstrap-server", "127.0.0.1:1", "--release", "9.9"), "there is no release '9.9'"),
        (("--bootstrap-server", "127.0.0.1:1", "--allow", "/no/such/file"), "/no/such/file"),
        (("--bootstrap-server", "127.0.0.1:1", "--junit", "/no/such/folder/file"), "cannot write"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(given: tuple[str, ...], said: str) -> None:
    done = kspec("conformance", "run", *given)
    assert done.status == 2
    (line,) = done.err.splitlines()
    assert said in line


def test_an_allowed_failure_needs_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "allowed"
    file.write_text("# known\nreading/fetch.end/nothing\n", encoding="utf-8")
    done = kspec("conformance", "run", "--bootstrap-server", "127.0.0.1:1", "--allow", str(file))
    assert done.status == 2
    assert "no reason is given" in done.err
