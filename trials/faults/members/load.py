"""Members of two groups, one for each protocol: a process for each family, and what its members say.

A program of a family gets SERVERS TOPIC PARTITIONS PAUSE_MS STAYS_S NAME=PROTOCOL=NUMBER…, and ends when its standard input
does. It prints a line, with tabs between its fields, the first of which is the time (ms since 1970), when something happens:
`owns NAME PARTITION` and `gives NAME PARTITION`, as the library tells its member; `commits NAME PARTITION OFFSET` before a
commit, and `committed NAME PARTITION OFFSET KIND ERROR` after it; `anew NAME ERROR` when a client could not go on, and
another one takes its place. A member joins the group `TOPIC-PROTOCOL`, commits offsets of what it has, leaves after STAYS_S
to three times that, and joins again. After the first line of input nobody leaves any more. No two commits have the same
offset: it is the number of the member's turn, and then that of the member.

Lines of several processes are read in any order, and a reading of an offset may be noted before the line that says that it
is committed. So events have the times of the processes, which have one clock, and are put in order by them.
"""

import contextlib
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO

from kspec.trials.faults.members.families import MemberFamily
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    CommitOutcome,
    CommitStart,
    Event,
    OffsetFetchStart,
    OwnershipEnd,
    OwnershipStart,
)

END_S = 60.0
"""The longest wait for the members of a process to leave."""

Lines = Sequence[str]


BEGINNINGS = (CommitStart, OffsetFetchStart, OwnershipEnd)
"""Events that come before others of the same millisecond."""


class TimedEvents:
    """The events of several processes, by their times."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._began = now_ms()
        self._lock = threading.Lock()

    def since_began(self, ms: int) -> int:
        """A time (ms since 1970) as one of the history."""
        return max(ms - self._began, 0)

    def note(self, event: Event) -> None:
        """Note an event, whose time is one of the history."""
        with self._lock:
            self._events.append(event)

    @property
    def in_order(self) -> list[Event]:
        """All events in order of time; those that begin something first, so that nothing looks later than it was."""
        with self._lock:
            listed = list(self._events)
        return sorted(listed, key=lambda event: (event.ms, not isinstance(event, BEGINNINGS)))


def now_ms() -> int:
    """The time by the clock that all processes have (ms since 1970)."""
    return int(time.time() * 1000)


class MemberLoad:
    """Processes with members, from `start` to `stop`. `members`: the protocol of each member, by its name."""

    def __init__(
        self, servers: str, topic: str, partitions: int, events: TimedEvents, pause_ms: int, stays_s: float
    ) -> None:
        self._topic, self._events = topic, events
        self._shared = [servers, topic, str(partitions), str(pause_ms), str(stays_s)]
        self._processes: list[tuple[str, subprocess.Popen[str]]] = []
        self._threads: list[threading.Thread] = []
        self._groups: dict[str, str] = {}
        self._numbers = 0
        self.acknowledged: Counter[str] = Counter()
        """The number of acknowledged commits, by member."""
        self.errors: Counter[str] = Counter()
        """The errors of commits, with their numbers."""
        self.gave_up: Counter[str] = Counter()
        """The number of times that a client could not go on, by member."""
        self.failed: list[str] = []
        """Processes that did not end as they should, and lines that nobody understands."""

    def start(self, family: MemberFamily, members: Mapping[str, str]) -> None:
        """Start a process of a family."""
        named = []
        for name, protocol in members.items():
            self._numbers += 1
            self._groups[name] = f"{self._topic}-{protocol}"
            named.append(f"{name}={protocol}={self._numbers}")
        process = subprocess.Popen(
            [*family.command, *self._shared, *named],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        thread = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        thread.start()
        self._processes.append((family.name, process))
        self._threads.append(thread)

    def keep(self) -> None:
        """Let no member leave any more until the end."""
        for _, process in self._processes:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.write("stay\n")
                process.stdin.flush()

    def stop(self) -> None:
        """Let all members leave."""
        for _, process in self._processes:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
        for name, process in self._processes:
            try:
                status = process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
            if status:
                self.failed.append(f"the members of {name} ended with status {status}")
        for thread in self._threads:
            thread.join()

    def kill(self) -> None:
        """End all processes at once."""
        for _, process in self._processes:
            process.kill()
            process.wait()

    @property
    def ended(self) -> list[str]:
        """Families whose processes have ended although nobody told them to."""
        return [name for name, process in self._processes if process.poll() is not None]

    # ---- lines

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._note(line.rstrip("\n").split("\t"))

    def _named(self, member: str, partition: str) -> str:
        return f"{self._groups[member]}/{self._topic}-{partition}"

    def _note(self, line: Lines) -> None:
        match line:
            case [ms, "owns", name, partition] if ms.isdigit():
                self._events.note(OwnershipStart(name, self._named(name, partition), self._time(ms)))
            case [ms, "gives", name, partition] if ms.isdigit():
                self._events.note(OwnershipEnd(name, self._named(name, partition), self._time(ms)))
            case [ms, "commits", name, partition, offset] if ms.isdigit():
                self._events.note(CommitStart(name, self._named(name, partition), int(offset), self._time(ms)))
            case [ms, "committed", name, partition, offset, kind, error] if ms.isdigit():
                key = self._named(name, partition)
                self._events.note(CommitOutcome(key, int(offset), kind, error or None, self._time(ms) + 1))
                if kind == ACKNOWLEDGED:
                    self.acknowledged[name] += 1
                else:
                    self.errors[error] += 1
            case [_, "anew", name, _]:
                self.gave_up[name] += 1
            case _:
                self.failed.append(f"a member prints {line!r}")

    def _time(self, ms: str) -> int:
        return self._events.since_began(int(ms))
