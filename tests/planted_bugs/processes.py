"""A piece of work in a process of its own, which is ended when its time is over."""

import os
from collections.abc import Callable
from select import select
from signal import SIGKILL

HANGS = "(hangs)"
DIES = "(dies)"


def in_a_process(work: Callable[[], str], limit_s: float) -> str:
    """The result of the work; `HANGS` if it takes longer, `DIES` if it ends in another way."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        answer = DIES
        try:
            os.close(reader)
            answer = work()
        finally:
            os.write(writer, b"=" + answer.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        if select([answers], [], [], limit_s)[0]:
            read = answers.read().decode()
            answer = read[1:] if read else DIES
        else:
            os.kill(child, SIGKILL)
            answer = HANGS
    os.waitpid(child, 0)
    return answer
