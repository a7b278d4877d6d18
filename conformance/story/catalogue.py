"""Studies whose runs can be taken by processes, with the rules that fail there, and the rules that do not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kspec.conformance.story.errors import UnknownStoryError
from kspec.model_check.core.nearest import instead_of
from kspec.model_check.reports.studies.catalogue import STUDIES
from kspec.model_check.reports.studies.study import Study
from kspec.spec.releases.names import FIRST_KRAFT, KRAFT_NAMES, RELEASES

ON_LEADER, IN_ISR, COMMITTED, SAME_LOGS = (
    "AcknowledgedOnLeader",
    "AcknowledgedOnNextLeader",
    "CommittedOnNextLeader",
    "LogMatching",
)
"""The properties of model `kafka` whose failure can be seen in logs, acknowledgements and the ISR."""

WHAT_IS_WRONG: Mapping[str, str] = {
    ON_LEADER: "an acknowledged record is not on the leader",
    IN_ISR: "an acknowledged record is not on a broker that may lead next",
    COMMITTED: "a committed record is not on a broker that may lead next",
    SAME_LOGS: "two logs have different committed records at one offset",
}


class StoryRules(NamedTuple):
    """The rules of all nodes: a release, and one rule weakened or none."""

    release: str
    mutant: str | None = None

    def __str__(self) -> str:
        return f"release {self.release}" if self.mutant is None else f"release {self.release} with mutant {self.mutant}"


@dataclass(frozen=True, slots=True)
class Story:
    """A study as processes show it.

    - `failing`, `repaired`: the rules of the processes;
    - `bounds`: of model `kafka`, in which the run is looked for; `changed`: settings among them that repair it;
    - `invariant`: the property that the run violates.
    """

    name: str
    failing: StoryRules
    repaired: StoryRules
    bounds: Mapping[str, Any]
    invariant: str
    changed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def study(self) -> Study:
        """The study of this name."""
        return next(study for study in STUDIES if study.name == self.name)

    @property
    def repaired_bounds(self) -> Mapping[str, Any]:
        """The bounds of the same run, and the settings that repair it."""
        return {**self.bounds, **self.changed}

    @property
    def fails_with(self) -> str:
        """The rules under which it fails, in words."""
        settings = [f"{name.replace('_', '-')} {self.bounds[name]}" for name in self.changed]
        return " and ".join([str(self.failing), *settings])

    @property
    def holds_with(self) -> str:
        """The rules that prevent it, in words."""
        settings = [f"{name.replace('_', '-')} {value}" for name, value in self.changed.items()]
        return " and ".join([str(self.repaired), *settings])


NEXT = StoryRules("next")
_TWO_BROKERS = {"brokers": 2, "values": 2}

STORIES: Mapping[str, Story] = {
    story.name: story
    for story in (
        Story("kip-101-loss", StoryRules("0.10"), StoryRules("0.11"), {"elections": 2}, ON_LEADER),
        Story("kip-101-divergence", StoryRules("0.10"), StoryRules("0.11"), {**_TWO_BROKERS, "elections": 2}, SAME_LOGS),
        Story(
            "kip-279-fast-leader-changes",
            StoryRules("1.1"),
            StoryRules("2.0"),
            {**_TWO_BROKERS, "values": 3, "elections": 2},
            SAME_LOGS,
        ),
        Story("epochs-out-of-order", StoryRules("2.0"), StoryRules("2.1"), {**_TWO_BROKERS, "elections": 3}, ON_LEADER),
        Story("kip-320-zombie", StoryRules("2.0"), StoryRules("2.1"), {"elections": 3}, ON_LEADER),
        Story("acks-1", NEXT, NEXT, {"brokers": 2, "elections": 1, "acks": "1"}, ON_LEADER, {"acks": "all"}),
        Story(
            "unclean-election",
            NEXT,
            NEXT,
            {**_TWO_BROKERS, "min_isr": 1, "elections": 1, "fencings": 2, "unclean": True},
            ON_LEADER,
            {"unclean": False},
        ),
        Story(
            "min-isr-1",
            NEXT,
            NEXT,
            {"brokers": 2, "min_isr": 1, "elections": 0, "fencings": 2, "unclean": True},
            ON_LEADER,
            {"min_isr": 2},
        ),
        Story("diverging-fetch", StoryRules("next", "count-diverging-fetch"), NEXT, {"elections": 1, "values": 2}, IN_ISR),
        Story(
            "high-watermark-before-truncation",
            StoryRules("next", "high-watermark-before-truncation"),
            NEXT,
            {**_TWO_BROKERS, "min_isr": 1, "elections": 2, "fencings": 1},
            SAME_LOGS,
        ),
        Story(
            "below-min-isr",
            StoryRules("next", "advance-below-min-isr"),
            NEXT,
            {"elections": 0, "isr_shrinks": 1},
            COMMITTED,
        ),
        Story("unfenced-fetch", StoryRules("next", "unfenced-requests"), NEXT, {"elections": 2}, COMMITTED),
        Story(
            "async-isr-shrink-early",
            StoryRules("next", "shrink-before-confirmation"),
            NEXT,
            {"elections": 0, "isr_shrinks": 1},
            COMMITTED,
        ),
        Story(
            "rolled-back-proposal",
            StoryRules("next", "roll-back-on-any-error"),
            NEXT,
            {"brokers": 2, "min_isr": 1, "elections": 0, "isr_shrinks": 1},
            COMMITTED,
        ),
        Story("forgotten-proposal", StoryRules("4.4"), NEXT, {"elections": 1, "isr_shrinks": 1}, ON_LEADER),
        Story("missed-epoch", StoryRules("4.4"), NEXT, {"elections": 2, "fencings": 1}, ON_LEADER),
    )
}
"""The studies whose runs can be taken by processes."""

_PUBLISHED = "a rule of a published model, which no release lacks, and which no mutant of a broker weakens alone"
_LATE = (
    "a request is handled, or a response read, after its connection is gone; the proxies lose messages of a lost connection"
)
_STARTS = (
    "a broker that is back registers just when its session ends; which comes first, processes do not decide the same twice"
)

_OF_QUORUM = "its servers are controllers that vote, and a cluster has one: kspec world quorum shows it on Kafka's own"
_OF_GROUPS = "a story has load and faults of one partition, and no group of consumers"
NOT_ON_PROCESSES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "lost-update",
            "assignment-that-was-taken-back",
            "commit-of-an-earlier-epoch",
            "partition-given-back",
            "fenced-while-joining",
            "member-without-a-client",
        ),
        _OF_GROUPS,
    ),
    **dict.fromkeys(("kept-vote", "answers-before-flush"), _OF_QUORUM),
    **dict.fromkeys(
        (
            "late-end-of-transaction",
            "hanging-transaction",
            "verified-too-early",
            "second-marker-of-a-fence",
            "coordinator-ahead-of-its-log",
            "late-marker",
            "torn-transaction",
            "overtaken-commit",
            "self-fencing-over-rotation",
            "fence-raises-epoch-twice",
            "fence-of-last-epoch",
            "offsets-checked-too-early",
            "offset-of-a-former-member",
        ),
        "a story has load and faults of one partition, and no producer of transactions",
    ),
    "kafka-7415-own-epoch": "no release has this fault alone, and the other rules of today hide it",
    "kip-320-first-try": "a draft of a rule that no release has had",
    "unfenced-truncation": "a broker's mutant weakens this fence only together with the one of unfenced-fetch",
    "high-watermark-without-epoch": _PUBLISHED,
    "join-before-epoch-start": _PUBLISHED,
    "async-isr-committed-only": "a leader waits for a follower that may join until it exceeds the lag; in the model it does",
    "latest-offset": "nothing is lost: a consumer is told an earlier offset than before, which logs do not show",
    "earlier-incarnation": _LATE,
    "late-divergence": _LATE,
    "forgotten-epoch": _LATE,
    "records-read-late": _LATE,
    "second-copy-of-a-proposal": "a request arrives a second time, which no connection does",
    "fenced-replica": _STARTS,
    "last-replica-standing": _STARTS,
    "unclean-incarnation-in-isr": _STARTS,
    "answer-before-unfenced": _STARTS,
    "fetch-before-registration": _STARTS,
}
"""The other studies, with the reasons why processes cannot show them."""


def story_named(name: str) -> Story:
    """The story of a name. Raises: `UnknownStoryError`."""
    if name in STORIES:
        return STORIES[name]
    if name in NOT_ON_PROCESSES:
        raise UnknownStoryError(f"processes cannot show {name}: {NOT_ON_PROCESSES[name]}")
    raise UnknownStoryError(
        f"there is no story {name!r}: {instead_of(name, list(STORIES), 'kspec cluster --stories lists all')}"
    )


def controller_release(release: str) -> str:
    """The release whose KRaft controller a cluster of this release has: the oldest one, for releases before."""
    return release if RELEASES.index(release) >= FIRST_KRAFT else KRAFT_NAMES[0]


def page() -> Iterator[str]:
    """The lines of a table of all studies, in Markdown."""
    yield "| study | fails with | does not with | what is wrong |"
    yield "|---|---|---|---|"
    for study in STUDIES:
        story = STORIES.get(study.name)
        if story is not None:
            yield f"| {study.name} | {story.fails_with} | {story.holds_with} | {WHAT_IS_WRONG[story.invariant]} |"
    yield ""
    yield "| study | why processes cannot show it |"
    yield "|---|---|"
    for study in STUDIES:
        if study.name in NOT_ON_PROCESSES:
            yield f"| {study.name} | {NOT_ON_PROCESSES[study.name]} |"
