"""A bank: transactional clients of several families move amounts between accounts; coordinators and leaders are killed.

An account lies in one partition, and a transfer writes an entry for each of its two accounts in a transaction. An auditor
reads what is committed, and takes snapshots all the time. A snapshot is completed: of each transaction that it has a part of
it reads the rest. So its sum is the same whenever it is taken, if each transaction is read as a whole or not at all.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from random import Random
from typing import NamedTuple

from kspec.trials.cluster.asking import NOT_REACHED, ask_once
from kspec.trials.cluster.cpu import CpuMeter
from kspec.trials.cluster.foreground import in_thread
from kspec.trials.cluster.plan import HOST, ClusterError
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.cluster.view import ClusterProbe
from kspec.trials.faults.load import CLIENT, Recorder, create_topic, library
from kspec.trials.faults.transactors.families import ClientFamily
from kspec.trials.faults.transactors.load import (
    BANK,
    CommittedConsumer,
    TransactionLoad,
    TransactionTopics,
    counts_of_transactions,
)
from kspec.trials.history.anomalies import Anomaly, anomalies_in, count_by_name
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    Event,
    SendOutcome,
    SendStart,
    Snapshot,
    TransactionEnd,
    write_history,
)
from kspec.trials.history.transactions import BankEntry

TOPIC, OPENING = "bank", "opening.1"
FIRST_AMOUNT = 100
"""The amount on each account at first, taken from one that belongs to the bank."""

SNAPSHOT_EVERY_S, COMPLETE_S, OPENED_S, WHOLE_S = 0.5, 60.0, 60.0, 90.0
TRANSACTION_KEY = 1


class BankSettings(NamedTuple):
    """The bank, the time for which it works (s), and how often a broker is killed, and for how long it stays away (s)."""

    seconds: float
    families: tuple[ClientFamily, ...]
    accounts: int = 100
    partitions: int = 10
    clients: int = 10
    kill_every_s: float = 10.0
    away_s: float = 3.0
    seed: int = 1


class BankAuditor(CommittedConsumer):
    """A reader of what is committed that takes snapshots. `sums`: of all accounts but the bank's own, by snapshot."""

    def begin(self, accounts: int) -> None:
        """Know nothing yet. `accounts`: the number of the bank's own account, behind all others."""
        self._accounts = accounts
        self._known: dict[int, list[tuple[int, BankEntry]]] = {number: [] for number in self.at}
        self._taken = dict.fromkeys(self.at, 0)
        self._parts: dict[str, int] = {}
        """The sum of the entries of each transaction of which there is a part."""
        self._sum = 0
        self.sums: list[int] = []

    def take(self, partition: int, records: Sequence[tuple[int, str]]) -> None:
        """Keep the entries."""
        self._known[partition] += [(offset, BankEntry.of(value)) for offset, value in records]

    def _extend(self, partition: int, end: int) -> None:
        """Put the entries of a partition into the snapshot, up to this many."""
        for _, entry in self._known[partition][self._taken[partition] : end]:
            self._parts[entry.transaction] = self._parts.get(entry.transaction, 0) + entry.amount
            if not self._parts[entry.transaction]:
                del self._parts[entry.transaction]
            if entry.account != self._accounts:
                self._sum += entry.amount
        self._taken[partition] = end

    def _complete(self) -> bool:
        """Put the entries that are known of incomplete transactions into the snapshot; whether there were any."""
        moved = False
        for partition, known in self._known.items():
            begin = self._taken[partition]
            lacking = [place for place in range(begin, len(known)) if known[place][1].transaction in self._parts]
            if lacking:
                self._extend(partition, lacking[-1] + 1)
                moved = True
        return moved

    @property
    def has_read(self) -> bool:
        """Whether anything was read. A snapshot of nothing is whole as well, but says nothing of the accounts."""
        return any(self._known.values())

    def take_snapshot(self) -> bool:
        """Take a snapshot of all that was polled, and complete it; whether it could be completed in time."""
        for partition, known in self._known.items():
            self._extend(partition, len(known))
        end = time.monotonic() + COMPLETE_S
        while self._parts and time.monotonic() < end:
            if not self._complete():
                self.poll()
        ends = tuple(
            (f"{self._topic}-{partition}", known[self._taken[partition] - 1][0] + 1 if self._taken[partition] else 0)
            for partition, known in self._known.items()
        )
        self._recorder.note(partial(Snapshot, self._name, ends))
        self.sums.append(self._sum)
        return not self.is_incomplete

    @property
    def is_incomplete(self) -> bool:
        """Whether the last snapshot has a part of a transaction whose rest did not come."""
        return bool(self._parts)


class BankVerdict(NamedTuple):
    """The verdict on a bank, and its figures. `latencies`: of committed transactions (ms), in order."""

    settings: BankSettings
    anomalies: tuple[Anomaly, ...]
    stuck: str
    sums: Counter[int]
    counts: dict[str, int]
    kills: Counter[str]
    took_s: float
    cpu_s: float
    latencies: tuple[int, ...]

    @property
    def is_bad(self) -> bool:
        """Whether a promise is broken, or the bank did not come to its end."""
        return bool(self.anomalies or self.stuck or set(self.sums) - {FIRST_AMOUNT * self.settings.accounts})

    def latency_ms(self, share: float) -> int:
        """The time within which this share of the committed transactions was committed (ms)."""
        return self.latencies[min(int(share * len(self.latencies)), len(self.latencies) - 1)] if self.latencies else 0

    def as_json(self) -> dict[str, object]:
        """The verdict in JSON."""
        committed = len(self.latencies)
        return {
            "families": [family.name for family in self.settings.families],
            "clients": self.settings.clients,
            "accounts": self.settings.accounts,
            "seconds": round(self.took_s, 1),
            "cpu_seconds": round(self.cpu_s, 1),
            "sums": {str(one): times for one, times in self.sums.items()},
            "counts": self.counts,
            "kills": dict(self.kills),
            "per_second": round(committed / self.took_s, 1),
            "per_cpu_second": round(committed / max(self.cpu_s, 0.01), 1),
            "median_ms": self.latency_ms(0.5),
            "p99_ms": self.latency_ms(0.99),
            "stuck": self.stuck,
            "anomalies": [one.as_json() for one in self.anomalies],
        }

    def __str__(self) -> str:
        wanted = FIRST_AMOUNT * self.settings.accounts
        found = f"the sum of {self.settings.accounts} accounts was {wanted:,} in each of {sum(self.sums.values())} snapshots"
        if wrong := set(self.sums) - {wanted}:
            found = (
                f"THE SUM IS WRONG: {wanted:,} in {self.sums[wanted]} snapshots, and {', '.join(map(str, sorted(wrong)))}"
            )
        if self.anomalies:
            told = ", ".join(f"{name} {count}" for name, count in count_by_name(self.anomalies).items())
            found = f"ANOMALIES: {told}; {found}"
        if self.stuck:
            found = f"NOT TO ITS END: {self.stuck}; {found}"
        figures = self.as_json()
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.items() if name != "consumed")
        killed = " and ".join(f"{count} of {name}" for name, count in sorted(self.kills.items())) or "none"
        return (
            f"bank: {found}\n"
            f"{counts}; kills: {killed}\n"
            f"{figures['per_second']} transactions per second, {figures['per_cpu_second']} per CPU-second of the nodes;"
            f" committed within {figures['median_ms']} ms (median), {figures['p99_ms']} ms (p99)"
        )


class BankTrial:
    """A bank on a cluster that runs."""

    def __init__(self, cluster: ClusterSupervisor, settings: BankSettings) -> None:
        self._cluster, self._settings = cluster, settings
        self._random = Random(f"bank {settings.seed}")
        self._recorder = Recorder()
        self._kills: Counter[str] = Counter()
        self._ended = threading.Event()
        self._view = ClusterProbe({one.node.node_id: (HOST, one.node.port) for one in cluster.brokers})
        names = cycle(settings.families)
        self._clients: dict[ClientFamily, list[str]] = {family: [] for family in settings.families}
        for number in range(settings.clients):
            family = next(names)
            self._clients[family].append(f"{family.name}-{number}")

    async def run(self) -> BankVerdict:
        """Open the accounts, let the clients work, kill brokers, and judge. Raises: `ClusterError`."""
        settings, servers = self._settings, self._cluster.addresses
        await in_thread(create_topic, servers, TOPIC, settings.partitions, len(self._cluster.brokers))
        await self._until_whole()
        await in_thread(self._open, servers)
        topics = TransactionTopics(TOPIC, TOPIC, settings.partitions)
        load = TransactionLoad(servers, topics, self._recorder, accounts=settings.accounts, pause_ms=0, seed=settings.seed)
        auditor = BankAuditor(servers, TOPIC, range(settings.partitions), "auditor", self._recorder)
        auditor.begin(settings.accounts)
        audit = asyncio.create_task(in_thread(self._audit, auditor))
        meter = CpuMeter(self._cluster)
        measuring = asyncio.create_task(meter.run())
        stuck, began = "", time.monotonic()
        for family, names in self._clients.items():
            load.start(family, dict.fromkeys(names, BANK))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(settings.seconds):
                    await self._keep_killing()
            took_s, cpu_s = time.monotonic() - began, meter.seconds
            self._cluster.held.clear()
            try:
                await self._cluster.until_all_serve()
                await self._until_whole()
            except ClusterError as error:
                stuck = str(error)
            await in_thread(load.stop if not stuck else load.kill)
        except BaseException:
            load.kill()
            raise
        finally:
            self._ended.set()
            measuring.cancel()
            self._view.close()
            await audit
        stuck = stuck or "; ".join(load.failed) or await self._last_reading(load, auditor)
        auditor.close()
        return self._judged(stuck, auditor, took_s, cpu_s)

    def _judged(self, stuck: str, auditor: BankAuditor, took_s: float, cpu_s: float) -> BankVerdict:
        events = self._recorder.events
        ends = [one for one in events if isinstance(one, TransactionEnd) and one.kind == ACKNOWLEDGED and one.began > 0]
        found = tuple(one for one in anomalies_in(events) if not stuck or one.name != "unseen")
        latencies = tuple(sorted(one.ms - one.began for one in ends if one.transaction != OPENING))
        counts, sums = counts_of_transactions(events), Counter(auditor.sums)
        verdict = BankVerdict(self._settings, found, stuck, sums, counts, self._kills, took_s, cpu_s, latencies)
        self._keep(verdict, events)
        return verdict

    def _keep(self, verdict: BankVerdict, events: Sequence[Event]) -> None:
        folder = self._cluster.folder.path / "bank"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "history.jsonl").open("w", encoding="utf-8") as stream:
            write_history(events, stream)
        (folder / "verdict.json").write_text(json.dumps(verdict.as_json(), indent=1) + "\n", encoding="utf-8")

    # ---- accounts

    def _open(self, servers: str) -> None:
        """Put the first amounts on all accounts, in one transaction. Raises: `ClusterError`."""
        kafka, settings = library(), self._settings
        given = dict.fromkeys(range(settings.accounts), FIRST_AMOUNT)
        entries = [BankEntry(OPENING, account, amount) for account, amount in given.items()]
        entries.append(BankEntry(OPENING, settings.accounts, -sum(given.values())))
        producer = kafka.Producer({**CLIENT, "bootstrap.servers": servers, "transactional.id": OPENING})
        try:
            producer.init_transactions(OPENED_S)
            producer.begin_transaction()
            for entry in entries:
                partition = entry.account % settings.partitions
                self._recorder.note(partial(SendStart, OPENING, f"{TOPIC}-{partition}", str(entry), transaction=OPENING))
                producer.produce(TOPIC, str(entry).encode(), partition=partition, on_delivery=self._opened)
            producer.commit_transaction(OPENED_S)
        except kafka.KafkaException as error:
            raise ClusterError(f"the accounts cannot be opened: {error.args[0].str()}") from error
        self._recorder.note(lambda ms: TransactionEnd(OPENING, OPENING, ACKNOWLEDGED, None, ms, ms))

    def _opened(self, error: object, message: object) -> None:
        if error is None:
            place, value = f"{TOPIC}-{message.partition()}", message.value().decode()  # type: ignore[attr-defined]
            offset: int = message.offset()  # type: ignore[attr-defined]
            self._recorder.note(lambda ms: SendOutcome(place, value, ACKNOWLEDGED, offset, None, ms, OPENING))

    def _audit(self, auditor: BankAuditor) -> None:
        """Read, and take a snapshot now and then, until all is over."""
        due = time.monotonic() + SNAPSHOT_EVERY_S
        while not self._ended.is_set():
            auditor.poll()
            if time.monotonic() > due and auditor.has_read:
                if not auditor.take_snapshot():
                    return  # nor will a later one be complete
                due = time.monotonic() + SNAPSHOT_EVERY_S

    async def _last_reading(self, load: TransactionLoad, auditor: BankAuditor) -> str:
        """Read all once more, and take the last snapshot; the reason why that was not possible, if so."""
        try:
            await in_thread(load.read_at_the_end)
            await in_thread(auditor.read_to_the_end)
        except ClusterError as error:
            return str(error)
        if not auditor.is_incomplete:
            await in_thread(auditor.take_snapshot)
        return ""

    # ---- kills

    async def _keep_killing(self) -> None:
        """Kill the coordinator of a client, then the leader of a partition, and so on; one broker is down at a time."""
        targets: list[tuple[str, Callable[[], object]]] = [("a coordinator", self._coordinator), ("a leader", self._leader)]
        for what, find in cycle(targets):
            await asyncio.sleep(self._settings.kill_every_s)
            node = await find()  # type: ignore[misc]
            if node not in self._cluster.processes:
                continue
            self._kills[what] += 1
            self._cluster.held.add(node)
            self._cluster.processes[node].kill()
            await asyncio.sleep(self._settings.away_s)
            self._cluster.held.discard(node)
            await self._cluster.until_all_serve()
            await self._until_whole()

    async def _coordinator(self) -> str:
        """The coordinator of a client's transactional id; nothing, if nobody tells."""
        name = self._random.choice([name for names in self._clients.values() for name in names])
        for process in self._cluster.brokers:
            with contextlib.suppress(*NOT_REACHED):
                wanted = {"key_type": TRANSACTION_KEY, "coordinator_keys": [name]}
                answer = await ask_once((HOST, process.node.port), "FindCoordinator", 4, 5.0, **wanted)
                return str(answer.coordinators[0].node_id)
        return ""

    async def _leader(self) -> str:
        """The leader of any partition."""
        found = await self._view.partitions(TOPIC)
        return str(self._random.choice(found).leader) if found else ""

    async def _until_whole(self) -> None:
        """Wait until all replicas of the bank are in sync. Raises: `ClusterError`."""
        end = time.monotonic() + WHOLE_S
        while True:
            found = await self._view.partitions(TOPIC)
            in_sync = all(one.leader >= 0 and set(one.isr) == set(one.replicas) for one in found)
            if len(found) == self._settings.partitions and in_sync:
                return
            if time.monotonic() > end:
                told = [f"{one.partition} leader {one.leader} ISR {list(one.isr)}" for one in found]
                raise ClusterError(f"not whole again after {WHOLE_S:g} s: {', '.join(told) or 'no broker answers'}")
            await asyncio.sleep(0.2)
