"""A process that searches for the server of the explorer: a question is a line of JSON, and so is each answer.

A search must not keep others waiting, and rules are evaluated in one thread only, so each search has a process. It ends when
its standard input does, that is with the server, however that ends.
"""

import errno
import json
import os
import queue
import signal
import sys
import threading
from typing import Any, TextIO

from kspec.model_check.core.exploration import INTERRUPTED
from kspec.model_check.core.preparation import watched
from kspec.model_check.engines.explorer import explorer as engine_named
from kspec.model_check.explorer import Explorer

WORKERS = max(1, (os.cpu_count() or 1) - 1)
"""The threads of a search: one processor is left for the server."""


OUT_OF_MEMORY = "out of memory; choose fewer states, or smaller bounds"
"""The reason for which a search ends that has not enough memory. The process is of no more use then."""


class SearchProcess:
    """Answers questions `{"address": …, "message": {"do": "find", …}}` one after the other; `{"do": "cancel"}` stops one."""

    def __init__(self, asked: TextIO, told: TextIO) -> None:
        self._asked, self._told = asked, told
        self._cancelled = threading.Event()
        self._questions: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._address: str | None = None
        self._doing = ""
        self._explorer = Explorer(
            cancelled=self._cancelled.is_set, report=self._tell, explore=engine_named("compiled", WORKERS)
        )

    def run(self) -> None:
        """Answer until the input ends."""
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            question = self._questions.get()
            try:
                with watched(self._check):
                    answer = self._answer(question)
            except KeyboardInterrupt:  # while the model or its tables were made
                self._address = None
                answer = _stopped(question, INTERRUPTED)
            except (MemoryError, OSError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
                answer = _stopped(question, OUT_OF_MEMORY)
            self._tell(answer)

    def _read(self) -> None:
        for line in self._asked:
            question = json.loads(line)
            if question.get("do") == "cancel":
                self._cancelled.set()
            else:
                self._cancelled.clear()
                self._questions.put(question)
        os._exit(0)

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._address != question["address"]:
            opened = self._explorer.answer({"do": "open", "address": question["address"]})
            if opened["answer"] != "view":
                return opened
            self._address = question["address"]
        return self._explorer.answer(question["message"])

    def _check(self, doing: str) -> None:
        if self._cancelled.is_set():
            raise KeyboardInterrupt
        if doing != self._doing:
            self._doing = doing
            self._tell({"answer": "progress", "level": 0, "states": 0, "doing": doing})

    def _tell(self, answer: dict[str, Any]) -> None:
        self._told.write(json.dumps(answer) + "\n")
        self._told.flush()


def _stopped(question: dict[str, Any], reason: str) -> dict[str, Any]:
    """The answer to a question whose search has told nothing itself."""
    asked = {key: value for key, value in question["message"].items() if key in ("id", "property", "start")}
    return {"answer": "found", "found": False, "complete": False, "states": 0, "stopped_because": reason, **asked}


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or "can't start new thread" in str(error)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this one
    SearchProcess(sys.stdin, sys.stdout).run()
