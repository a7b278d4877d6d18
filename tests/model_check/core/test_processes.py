"""Ctrl-C while processes are started: it waits, whichever thread the system gives it to."""

import os
import signal
import threading
import time

import pytest

from kspec.model_check.core.processes import without_interrupts


def test_ctrl_c_waits_though_another_thread_does_not_block_it() -> None:
    """A process that is starting then lacked what it is told, and complained: the signal went to the other thread."""
    over = threading.Event()
    other = threading.Thread(target=over.wait, args=(60,))
    other.start()
    done = []

    def starts() -> None:
        with without_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)  # the other thread takes it meanwhile
            done.append("started")

    try:
        with pytest.raises(KeyboardInterrupt):
            starts()
    finally:
        over.set()
        other.join(60)
    assert done == ["started"]


def test_without_ctrl_c_its_handler_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with without_interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_may_ask_too() -> None:
    done = []

    def starts() -> None:
        with without_interrupts():
            done.append(True)

    thread = threading.Thread(target=starts)
    thread.start()
    thread.join(60)
    assert done == [True]
