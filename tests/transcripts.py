"""The page of transcripts, `docs/cli.md`: what the commands print, on a terminal of 80 columns.

`python -m tests.transcripts` runs all of them and writes the page, in half a minute. A test runs them again and compares.
What differs from run to run, seconds and rates, is written as `…`.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.places import DOCS, REPOSITORY

PAGE = DOCS / "cli.md"

RUN = "from model_check.cli.start import main; main()"


class Transcript(NamedTuple):
    """A command, a sentence that introduces it, and how many of the lines that it prints are shown (0: all)."""

    command: str
    says: str
    shown: int = 0
    slow: bool = False


TRANSCRIPTS = (
    (
        "Begin",
        (
            Transcript("kspec history --no-traces", "Which versions of Kafka lose a committed record?"),
            Transcript("kspec study acks-1", "One failure, step by step, and the rule that repairs it."),
        ),
    ),
    (
        "Check a model",
        (
            Transcript("kspec models", "Which models there are."),
            Transcript("kspec models async-isr", "All of one model."),
            Transcript("kspec check kip-320 --replicas 2", "Every reachable state is explored; exit status 0."),
            Transcript(
                "kspec check truncate-to-hw --replicas 2 --restarts 1 --invariant CommittedOnNextLeader",
                "A property fails, exit status 1: a shortest run shows how. The numbers are those of states, so a run of"
                " eight steps ends in state 9.",
            ),
            Transcript(
                "kspec check kafka --brokers 2 --elections 0 --unclean-shutdowns 1 --symmetry --release 3.9",
                "Brokers and the controller of a release, with a failure.",
            ),
            Transcript("kspec check kip-320 --max-states 1000", "A limit is reached: exit status 3.", 8),
        ),
    ),
    (
        "Further questions",
        (
            Transcript("kspec liveness kip-320 --replicas 2", "What happens eventually, in every fair infinite run?"),
            Transcript(
                "kspec simulate truncate-to-hw --replicas 2 --traces 2000 --depth 50 --seed 3",
                "Random walks, for models that are too large to explore. The same seed takes the same walks.",
                24,
            ),
            Transcript("kspec mutants min-isr-of-one join-under-min-isr", "Weaken a rule: which property catches it?"),
            Transcript("kspec audit kip-320", "Do the actions read and write only what they declare?", 12),
            Transcript("kspec stats kip-320 --replicas 2", "The state graph in numbers.", 16),
            Transcript("kspec prove --list", "What is proved for logs of any length.", 12),
            Transcript("kspec prove async-isr --replicas 2 --workers 1", "A proof.", 12, slow=True),
        ),
    ),
    (
        "Mistakes",
        (
            Transcript("kspec check kip-32", "A mistake is one line on standard error, and exit status 2."),
            Transcript("kspec check kip-320 --replicas 64", "Bounds that nobody can explore are refused at once."),
            Transcript("kspec check kip-320 --invariant Strong", "A wrong name gets the nearest ones."),
            Transcript("kspec check kip-320 --json --itf -", "Two outputs cannot share standard output."),
        ),
    ),
)


def told_by(command: str) -> tuple[str, int]:
    """What a command prints on a terminal of 80 columns, and its exit status."""
    arguments = command.split()[1:]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(REPOSITORY)}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", RUN, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=environment,
        )
    mistakes = re.findall(r"^kspec: .*\n", done.stderr, flags=re.MULTILINE)  # and no progress
    return timeless(done.stdout + "".join(mistakes)), done.returncode


def timeless(text: str) -> str:
    """The text without what differs from run to run. Line breaks may depend on it: numbers keep no width."""
    text = re.sub(r"\d+\.\d+ +s\b", "… s", text)
    return re.sub(r"[\d,]+(?=\s(states|steps)/s)", "…", text)


def shown(transcript: Transcript) -> str:
    """A transcript as the page has it."""
    text, status = told_by(transcript.command)
    lines = text.rstrip("\n").splitlines()
    if transcript.shown and len(lines) > transcript.shown:
        lines = [*lines[: transcript.shown], "..."]
    ending = [] if status == 0 else ["", f"[exit status {status}]"]
    return "\n".join([f"$ {transcript.command}", *lines, *ending])


def page() -> Iterator[str]:
    """The parts of the page."""
    yield "# The command line in transcripts"
    yield (
        "You want to see what `kspec` prints before you install it, or to look up how a question is asked.\n"
        "Everything here is printed by real runs on a terminal of 80 columns, and written by\n"
        "`python -m tests.transcripts`. Seconds and rates are left out (`…`), `...` stands for further lines."
    )
    for title, transcripts in TRANSCRIPTS:
        yield f"## {title}"
        for transcript in transcripts:
            yield transcript.says
            yield f"```text\n{shown(transcript)}\n```"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    target.write_text("\n\n".join(page()) + "\n", encoding="utf-8")
