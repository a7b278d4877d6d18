"""Majority or ISR: one record, replicated by either, and the same failures. All is decided by the rules of `spec`.

A replicated record has the replicas that hold it, and those that are up. Servers fail and come back one after the other, and
what is left of them settles in between: a leader is elected if one can be, and who is up takes its log.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, permutations
from random import Random
from typing import NamedTuple, Protocol

from kspec.model_check.reports.delivery import Guarantee, check_guarantee
from kspec.model_check.reports.studies.study import Configuration
from kspec.spec.broker.rules.high_watermark import advance_at_min_isr, leader_high_watermark
from kspec.spec.controller.decisions import records_of_departure, records_of_fencing, records_of_unfencing
from kspec.spec.controller.protocol import Controller, ControllerSettings
from kspec.spec.controller.rules.partition_change import unchanged
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.metadata import (
    BrokerRegistration,
    MetadataImage,
    PartitionRecord,
    PartitionRegistration,
    broker_of,
    replay_all,
)
from kspec.spec.quorum.rules.replication import majority_offset
from kspec.spec.quorum.rules.votes import Tally, is_elected, is_up_to_date, majority_of
from kspec.spec.releases.kraft import NEWEST
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Incarnation,
    Offset,
    PartitionEpoch,
    PartitionId,
    ReplicaKey,
)

NONE, ONE = Offset(0), Offset(1)
"""The end of a log without the record, and with it."""

GOES_ON, STANDS_STILL, LOSES = "goes on", "stands still", "loses the record"
EPOCH = Epoch(1)
WHO = PartitionId(0)
Replicas = frozenset[BrokerId]


def replicas_of(count: int) -> Replicas:
    """So many replicas."""
    return frozenset(BrokerId(number) for number in range(count))


class ReplicatedRecord(Protocol):
    """One record on replicas, by one of both ways. A failure or a return gives another one."""

    @property
    def leader(self) -> BrokerId:
        """The replica that leads, `NO_LEADER` if nobody can."""

    @property
    def keeps(self) -> bool:
        """Whether the leader has the record; of no interest without a leader."""

    @property
    def commits(self) -> bool:
        """Whether the leader can commit another record with who is up."""

    def fail(self, broker: BrokerId) -> "ReplicatedRecord":
        """A replica goes down, with its disk as it is."""

    def come_back(self, broker: BrokerId, is_empty: bool) -> "ReplicatedRecord":
        """A replica comes back, with an empty disk or with what it had."""


class MajorityRecord(NamedTuple):
    """Voters of the metadata log (KRaft). `strangers`: those that have come back with another directory.

    `knows_directories`: `kraft.version` 1 (KIP-853), where such a one is no voter.
    """

    size: int
    holders: Replicas
    up: Replicas
    knows_directories: bool
    strangers: Replicas = frozenset()

    def _end(self, broker: BrokerId) -> tuple[Epoch, Offset]:
        return (EPOCH, ONE) if broker in self.holders else (Epoch(0), NONE)

    @property
    def leader(self) -> BrokerId:
        """The first candidate whose log no majority finds worse than its own."""
        voting = sorted(self.up - self.strangers)
        for candidate in voting:
            granted = frozenset(one for one in voting if is_up_to_date(*self._end(candidate), *self._end(one)))
            if is_elected(Tally(frozenset(map(ReplicaKey, replicas_of(self.size))), granted)):
                return candidate
        return NO_LEADER

    @property
    def keeps(self) -> bool:
        """Whether the leader has the record."""
        return self.leader in self.holders

    @property
    def commits(self) -> bool:
        """Whether a majority can take another record."""
        ends = tuple(ONE if one in self.up - self.strangers else NONE for one in sorted(replicas_of(self.size)))
        return self.leader != NO_LEADER and majority_offset(ends) == ONE

    def settled(self) -> "MajorityRecord":
        """The record when all that are up have taken the leader's log."""
        if self.leader == NO_LEADER:
            return self
        return self._replace(holders=self.holders | self.up if self.keeps else self.holders - self.up)

    def fail(self, broker: BrokerId) -> "MajorityRecord":
        """A voter goes down."""
        return self._replace(up=self.up - {broker}).settled()

    def come_back(self, broker: BrokerId, is_empty: bool) -> "MajorityRecord":
        """A voter comes back."""
        back = self._replace(up=self.up | {broker})
        if is_empty:
            strange = back.strangers | {broker} if self.knows_directories else back.strangers
            back = back._replace(holders=back.holders - {broker}, strangers=strange)
        return back.settled()


class IsrRecord(NamedTuple):
    """Replicas of a partition, whose ISR the controller keeps by the rules of the newest release."""

    controller: Controller
    image: MetadataImage
    holders: Replicas
    up: Replicas

    @property
    def partition(self) -> PartitionRegistration:
        """The partition as the controller has decided it."""
        return self.image.partitions[0].registration

    @property
    def leader(self) -> BrokerId:
        """The leader that the controller has elected."""
        return self.partition.leader

    @property
    def keeps(self) -> bool:
        """Whether the leader has the record."""
        return self.leader in self.holders

    @property
    def commits(self) -> bool:
        """Whether another record is committed: all of the ISR have it, and enough are in it."""
        ends = tuple(ONE if one in self.up else NONE for one in sorted(self.partition.isr))
        enough = advance_at_min_isr(len(self.partition.isr), self.controller.settings.min_isr)
        return self.leader != NO_LEADER and leader_high_watermark(NONE, ONE, ends, enough) == ONE

    def settled(self) -> "IsrRecord":
        """The record when all that are up have taken the leader's log, and are in sync."""
        if self.leader == NO_LEADER:
            return self
        target = unchanged(self.partition)._replace(isr=self.up)
        if self.controller.protocol.elr_enabled(self.controller.settings):
            min_isr = self.controller.settings.min_isr
            target = self.controller.protocol.eligible_leaders(self.partition, target, min_isr, frozenset())
        registration = self.partition._replace(isr=target.isr, elr=target.elr, last_known_elr=target.last_known_elr)
        image = self.image._replace(partitions=(PartitionRecord(WHO, registration),))
        holders = self.holders | self.up if self.keeps else self.holders - self.up
        return self._replace(image=image, holders=holders)

    def _registration(self, broker: BrokerId) -> BrokerRegistration:
        registration = broker_of(self.image.brokers, broker)
        assert registration is not None
        return registration

    def fail(self, broker: BrokerId) -> "IsrRecord":
        """A broker's session ends: the controller fences it."""
        records = records_of_fencing(self.controller, self.image, self._registration(broker))
        return self._replace(image=replay_all(self.image, records), up=self.up - {broker}).settled()

    def come_back(self, broker: BrokerId, is_empty: bool) -> "IsrRecord":
        """A broker registers, and is unfenced. What it says of the shutdown before lies on its disk."""
        registration = self._registration(broker)
        epoch_on_disk = NO_BROKER_EPOCH if is_empty else registration.broker_epoch
        request = BrokerRegistrationRequest(broker, Incarnation(registration.incarnation + 1), epoch_on_disk)
        protocol, settings = self.controller.protocol, self.controller.settings
        departure = protocol.departure(registration, request, protocol.elr_enabled(settings))
        image = replay_all(self.image, records_of_departure(self.controller, self.image, broker, departure))
        image = replay_all(image, records_of_unfencing(self.controller, image, registration))
        holders = self.holders - {broker} if is_empty else self.holders
        return self._replace(image=image, holders=holders, up=self.up | {broker}).settled()


class Scheme(NamedTuple):
    """A way to replicate, and a record that is committed on these replicas, all of which are up."""

    name: str
    record: Callable[[int, Replicas], ReplicatedRecord]
    committed_on: Callable[[int], int]
    """The fewest replicas that hold a committed record."""


def majority(knows_directories: bool) -> Callable[[int, Replicas], ReplicatedRecord]:
    """Records of a majority."""
    return lambda count, holders: MajorityRecord(count, holders, replicas_of(count), knows_directories)


def isr(settings: ControllerSettings) -> Callable[[int, Replicas], ReplicatedRecord]:
    """Records of an ISR, which has who holds the record."""

    def record(count: int, holders: Replicas) -> ReplicatedRecord:
        everyone = tuple(sorted(replicas_of(count)))
        brokers = tuple(BrokerRegistration(one, BrokerEpoch(1), Incarnation(1), fenced=False) for one in everyone)
        partition = PartitionRegistration(everyone, holders, min(holders), EPOCH, PartitionEpoch(0))
        image = MetadataImage(brokers=brokers, partitions=(PartitionRecord(WHO, partition),))
        return IsrRecord(Controller(NEWEST, settings), image, holders, replicas_of(count))

    return record


ISR_1 = ControllerSettings(min_isr=1)
ISR_2 = ControllerSettings(min_isr=2)
ELIGIBLE = ControllerSettings(min_isr=2, eligible_leader_replicas=True)
UNCLEAN = ControllerSettings(min_isr=1, unclean_election=True)

SCHEMES = (
    Scheme("majority, `kraft.version` 1", majority(knows_directories=True), majority_of),
    Scheme("majority, `kraft.version` 0", majority(knows_directories=False), majority_of),
    Scheme("ISR, `min.insync.replicas` 1", isr(ISR_1), lambda count: 1),
    Scheme("ISR, `min.insync.replicas` 2", isr(ISR_2), lambda count: min(2, count)),
    Scheme("the same with eligible leader replicas", isr(ELIGIBLE), lambda count: min(2, count)),
    Scheme("ISR 1, unclean elections", isr(UNCLEAN), lambda count: 1),
)


def outcome(record: ReplicatedRecord, *, asks_commit: bool = True) -> str:
    """The fate of the record, and whether another one can be committed."""
    if record.leader == NO_LEADER:
        return STANDS_STILL
    if not record.keeps:
        return LOSES
    return GOES_ON if record.commits or not asks_commit else STANDS_STILL


def worst(outcomes: Iterable[str]) -> str:
    """The worst of what may happen."""
    found = set(outcomes)
    return next(one for one in (LOSES, STANDS_STILL, GOES_ON) if one in found)


def tolerated(scheme: Scheme, count: int) -> int:
    """The most replicas of so many that may be down, whichever they are, and another record is committed all the same."""
    down = 0
    while down < count and worst(outcome(one) for one in failed(scheme, count, down + 1)) == GOES_ON:
        down += 1
    return down


def failed(scheme: Scheme, count: int, down: int) -> Iterator[ReplicatedRecord]:
    """The record after so many of its holders have failed, one after the other: in each order."""
    for order in permutations(sorted(replicas_of(count)), down):
        record = scheme.record(count, replicas_of(count))
        for broker in order:
            record = record.fail(broker)
        yield record


def awaited(scheme: Scheme, count: int) -> tuple[int, int, str]:
    """All fail, who holds a record that is just committed last, and all come back with their disks: after how many there is
    a leader again, at best and at worst, and the worst that becomes of the record.
    """
    numbers, outcomes = [], []
    for record in _all_failed(scheme, count):
        for back in permutations(sorted(replicas_of(count))):
            after, number = record, 0
            while after.leader == NO_LEADER and number < count:
                after = after.come_back(back[number], is_empty=False)
                number += 1
            numbers.append(number)
            outcomes.append(outcome(after, asks_commit=False))
    return min(numbers), max(numbers), worst(outcomes)


def _all_failed(scheme: Scheme, count: int) -> Iterator[ReplicatedRecord]:
    """All have failed since a record was committed on as few replicas as are enough, and these as the last, in any order."""
    everyone = sorted(replicas_of(count))
    for holders in combinations(everyone, scheme.committed_on(count)):
        for order in permutations(holders):
            record = scheme.record(count, frozenset(holders))
            for broker in (*(one for one in everyone if one not in holders), *order):
                record = record.fail(broker)
            yield record


def lost_disks(scheme: Scheme, count: int, disks: int) -> str:
    """The worst that becomes of a record that is just committed if all fail and so many disks are lost: all come back, those
    with empty disks first, which is the worst order.
    """
    lost = [frozenset(one) for one in combinations(sorted(replicas_of(count)), disks)]
    after = (_all_back(record, count, one) for record in _all_failed(scheme, count) for one in lost)
    return worst(outcome(record, asks_commit=False) for record in after)


def _all_back(record: ReplicatedRecord, count: int, lost: Replicas) -> ReplicatedRecord:
    for broker in (*sorted(lost), *sorted(replicas_of(count) - lost)):
        record = record.come_back(broker, is_empty=broker in lost)
    return record


# ---- latency

SEED, RECORDS = 1, 20_000
QUANTILES = (0.5, 0.99, 0.999)


class Latencies(NamedTuple):
    """Quantiles of the time until a record is committed, in units of a follower's median."""

    replicas: int
    times: tuple[float, ...]


def latencies(tolerates: int, *, by_majority: bool, slow: float = 1.0) -> Latencies:
    """The time until a record is committed by replicas of which so many may fail.

    Each follower takes a time of its own for each record (log-normal, sigma 0.5, the same for both ways); the last one takes
    `slow` times as long. A leader has the record at once.
    """
    count = 2 * tolerates + 1 if by_majority else tolerates + 1
    chance = Random(SEED)
    found = []
    for _ in range(RECORDS):
        times = [chance.lognormvariate(0, 0.5) for _ in range(2 * tolerates)][: count - 1]
        times[-1] *= slow
        found.append(next(time for time in sorted(times) if _is_committed(times, time, by_majority)))
    found.sort()
    return Latencies(count, tuple(found[int(quantile * RECORDS)] for quantile in QUANTILES))


def _is_committed(times: list[float], now: float, by_majority: bool) -> bool:
    ends = tuple(ONE if time <= now else NONE for time in times)
    if by_majority:
        return majority_offset((ONE, *ends)) == ONE
    return leader_high_watermark(NONE, ONE, ends, may_advance=True) == ONE


# ---- the same failures as runs of the models

RUNS = (
    ("ISR", "an unclean election", "unclean-election"),
    ("ISR", "the last one in sync comes back without what it had not flushed", "last-replica-standing"),
    ("majority", "a controller that is alone loses power", "answers-before-flush"),
    ("majority", "a controller that lost an election starts again", "kept-vote"),
)
"""The way, a failure, and the study that has a shortest run."""

LOST_DISK = {"release": "3.9", "wipes": 1, "records": 0, "restarts": 0}


def lost_disk_runs() -> list[tuple[str, Guarantee]]:
    """A voter's disk is lost, without and with directories: found by the checker."""
    kinds: tuple[tuple[str, dict[str, bool]], ...] = (
        ("`kraft.version` 0", {"without_directories": True}),
        ("`kraft.version` 1", {}),
    )
    return [
        (name, check_guarantee(Configuration("quorum", {**LOST_DISK, **kind}), "CommittedOnNewestLeader"))
        for name, kind in kinds
    ]


# ---- the page

COUNTS = range(1, 6)


def as_markdown() -> list[str]:
    """The tables of the page."""
    return ["\n".join(lines) for lines in (_tolerated(), _awaited(), _lost(), _latencies(), _runs())]


def _tolerated() -> list[str]:
    head = [f"| down at most, of | {' | '.join(map(str, COUNTS))} |", f"|---|{'---|' * len(COUNTS)}"]
    return head + [f"| {one.name} | {' | '.join(str(tolerated(one, count)) for count in COUNTS)} |" for one in SCHEMES]


def _awaited() -> list[str]:
    lines = ["| back before somebody leads, of | 2 | 3 | 4 | the record |", "|---|---|---|---|---|"]
    for one in SCHEMES:
        found = [awaited(one, count) for count in (2, 3, 4)]
        spans = [f"{least}" if least == most else f"{least} to {most}" for least, most, _ in found]
        lines.append(f"| {one.name} | {' | '.join(spans)} | {worst(end for *_, end in found)} |")
    return lines


def _lost() -> list[str]:
    lines = ["| disks lost, of 3 | 1 | 2 | 3 |", "|---|---|---|---|"]
    return lines + [f"| {one.name} | {' | '.join(lost_disks(one, 3, disks) for disks in (1, 2, 3))} |" for one in SCHEMES]


def _latencies() -> list[str]:
    lines = ["| may fail | way | replicas | followers alike | one follower ten times as slow |", "|---|---|---|---|---|"]
    for tolerates in (1, 2, 3):
        for name, by_majority in (("ISR", False), ("majority", True)):
            alike = latencies(tolerates, by_majority=by_majority)
            slow = latencies(tolerates, by_majority=by_majority, slow=10.0)
            times = [" / ".join(f"{time:.1f}" for time in one.times) for one in (alike, slow)]
            lines.append(f"| {tolerates} | {name} | {alike.replicas} | {times[0]} | {times[1]} |")
    return lines


def _runs() -> list[str]:
    lines = ["| way | failure | shortest run that loses a record, or ends a process |", "|---|---|---|"]
    lines += [f"| {way} | {failure} | [`kspec study {name}`](studies/{name}.md) |" for way, failure, name in RUNS]
    for name, found in lost_disk_runs():
        told = (
            f"none in {found.states:,} states"
            if found.steps is None
            else f"{found.steps} steps: `kspec explore {found.address}`"
        )
        lines.append(f"| majority | a disk is lost, {name} | {told} |")
    return lines
