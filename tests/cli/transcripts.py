"""The page of transcripts, `docs/cli.md`: what the commands print, on a terminal of 80 columns.

`python -m tests.cli.transcripts` runs all of them and writes the page, in half a minute. A test runs
them again and compares.
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

RUN = "from kspec.cli.start import main; main()"


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
            Transcript("kspec history", "Which versions of Kafka lose a committed record?"),
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

COMMANDS = """\
kspec history                                 # how the protocol has changed since 2012, and what each version loses
kspec study                                   # the failures that shaped Kafka's protocol
kspec study kip-101-loss                      # one of them: found anew, step by step, with its repair

kspec models                                  # the models
kspec models kip-320                          # one of them: parameters, actions, properties, mutants
kspec check kip-320                           # explore a model and check its properties
kspec check kip-101 --replicas 2 --all --json # all properties, as JSON
kspec check kip-279 --itf trace.itf.json --mermaid trace.mmd
kspec check kip-320 --mutant unfenced-truncation --invariant StrongIsr
kspec check kip-320 --symmetry                # one state for all that are equal up to renaming of brokers
kspec check kafka --release 4.4 --elections 1 --fencings 1 --symmetry   # brokers, controller, network: any release
kspec check messages --symmetry               # brokers and controller, each message in flight by itself
kspec liveness kip-320                        # liveness properties, under fairness

kspec matrix --release 3.9 --release next     # which release keeps which property (all releases: minutes)
kspec mutants                                 # weaken each rule of broker and controller: which property fails? (2 minutes)
kspec prove kip-320                           # proof for logs and epochs of any length (Z3)
kspec prove kip-320 --replicas any            # the same for any number of replicas
kspec prove kafka-next-power-loss             # each message by itself, with brokers that stop and lose records (10 minutes)
kspec simulate kip-101 --traces 100000 --depth 80    # random walks by seed; violations are shrunk

kspec graph kip-320 --out kip-320.parquet     # every state and transition, as tables (or GraphML, DOT)
kspec stats kip-320 --plots plots             # how often actions are taken, how states are connected
kspec check kip-320 --max-epoch 3 --checkpoint DIR   # keeps checkpoints; --resume DIR continues after Ctrl-C or a crash
kspec check kip-320 --engine spark            # on Apache Spark
kspec audit kip-320                           # do the actions read and write only what they declare?
kspec broker --log-dir DIR                    # a broker by these rules, for real Kafka clients (broker.md)
kspec cluster --log-dir DIR                   # three of them and a controller; --rounds N puts faults upon them (cluster.md)
kspec cluster --story kip-101-loss --release 0.10   # real processes go through a study's run, and lose the record
kspec simulate-cluster --story kip-101-loss   # the same in virtual time
kspec simulate-cluster --seeds 100            # clusters in simulated time, with faults (simulated-clusters.md)
kspec conformance run --bootstrap-server HOST:PORT   # 2015 cases for a broker; files: kspec conformance generate --out DIR
kspec conformance run --level 1 --driver kafka:4.4.0  # a cluster under faults, through a driver: Kafka's, ours, or yours
kspec world replay missed-epoch --kafka 4.4.0   # a run on a real broker of Apache Kafka: a record is lost (world.md)
kspec world mirror second-copy-of-a-proposal   # a run on a real controller of Apache Kafka (mirror.md)
kspec world quorum kept-vote                  # a real controller among three voters: it ends when it starts again (world.md)
kspec world transactions late-abort           # a late EndTxn loses a committed record of a real broker (world.md)
kspec site --out DIR                          # the static site: these pages, the explorer, runs to step through (site.md)
"""
"""One line for each thing that one may ask."""


def told_by(command: str) -> tuple[str, int]:
    """Output of a command on a terminal of 80 columns, and its exit status."""
    arguments = command.split()[1:]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(REPOSITORY)}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", RUN, *arguments],
            timeout=600,
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
    yield "# The command line"
    yield (
        "You want to see what `kspec` prints before you install it, or to look up how a question is asked.\n"
        "The transcripts are printed by real runs on a terminal of 80 columns, and written by\n"
        "`python -m tests.cli.transcripts`. Seconds and rates are left out (`…`), `...` stands for further lines."
    )
    yield "## All commands"
    yield f"```sh\n{COMMANDS}```"
    for title, transcripts in TRANSCRIPTS:
        yield f"## {title}"
        for transcript in transcripts:
            yield transcript.says
            yield f"```text\n{shown(transcript)}\n```"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    target.write_text("\n\n".join(page()) + "\n", encoding="utf-8")
