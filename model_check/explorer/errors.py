"""The errors that an explorer answers with."""

from typing import Any

LONGEST = 1_000
"""Letters of a sentence at most: it may repeat what a message has, and that may be anything."""


def in_short(sentence: str) -> str:
    """A sentence in one line, without its middle if it is too long."""
    line = " ".join(sentence.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST * 2 // 3]} […] {line[-LONGEST // 3 :]}"


class RefusedMessageError(ValueError):
    """A message that cannot be done. `kind` is for programs, the message is one sentence for people; `more` goes with it."""

    def __init__(self, kind: str, sentence: str, **more: Any) -> None:
        super().__init__(in_short(sentence))
        self.kind = kind
        self.more = more
