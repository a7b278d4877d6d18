"""Transactions in the files of a partition, beside the same log as `spec` reads it from its beginning: after any stops.

Whatever is left of a log after a loss of power, its files tell of producers, open transactions and aborted ones what a
replica knows that has read just these batches.
"""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from kspec.impl.records.batch import TRANSACTIONAL
from kspec.impl.records.markers import marker_batch
from kspec.impl.records.record import new_batch
from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles
from kspec.spec.log.batch import Batch, EndMarker
from kspec.spec.releases.transactions.history import TRANSACTIONS_NEXT
from kspec.spec.transactions.log.partition import PartitionTransactions, with_batches
from kspec.spec.transactions.log.reading import aborted_between, last_stable_offset
from kspec.spec.values import Epoch, Offset, ProducerEpoch, ProducerId, TimestampMs
from kspec.trials.simulated.disk import SimulatedDisk, Survives
from tests.times import at_ms

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)
PRODUCERS = st.sampled_from([ProducerId(3), ProducerId(5), ProducerId(8)])


def sum_of(batches: list[Batch]) -> int:
    """The number of offsets of some batches."""
    return sum(batch.record_count for batch in batches)


class TransactionsMachine(RuleBasedStateMachine):
    """Producers write in transactions and outside, coordinators end them, the log is cut, and the broker stops."""

    disk: SimulatedDisk
    directory: LogDirectory
    files: PartitionFiles

    @initialize(flush_messages=st.sampled_from([1 << 60, 1, 5, 5]))
    def begin(self, flush_messages: int) -> None:
        self.config = replace(CONFIG, flush_messages=flush_messages)
        self.disk = SimulatedDisk()
        self.directory = LogDirectory.open("/logs", self.disk, "cluster", 1)
        self.files = self.directory.create_partition("topic", 0, "A" * 22, self.config, at_ms(0))
        self.directory.checkpoint_logs()
        self.log: list[Batch] = []
        self.epochs: dict[int, int] = {}
        self.sequence = 0

    @property
    def end(self) -> int:
        return sum_of(self.log)

    def read(self, batches: list[Batch] | None = None) -> PartitionTransactions:
        """Knowledge of a replica that has read these batches, or all."""
        return with_batches(
            TRANSACTIONS_NEXT, PartitionTransactions(), Offset(0), tuple(self.log if batches is None else batches)
        )

    def _append(self, batch: Batch, content: bytes) -> None:
        self.log.append(batch)
        self.files.append(self.files.log.end_offset, Epoch(0), [content], at_ms(0))

    # ---- writing

    @rule(producer=PRODUCERS, count=st.integers(1, 3), is_transactional=st.booleans(), newer=st.sampled_from([0, 0, 0, 1]))
    def write(self, producer: ProducerId, count: int, is_transactional: bool, newer: int) -> None:
        epoch = self.epochs[producer] = self.epochs.get(producer, 0) + newer
        attributes = TRANSACTIONAL if is_transactional else 0
        records = [(1_000, b"k", b"v") for _ in range(count)]
        named = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": self.sequence}
        content = new_batch(records, attributes=attributes, **named)
        batch = Batch(count, Epoch(0), 0, producer, ProducerEpoch(epoch), self.sequence, is_transactional)
        self.sequence += count
        self._append(batch, content)

    @rule(producer=PRODUCERS, committed=st.booleans(), newer=st.integers(0, 1), coordinator=st.integers(0, 3))
    def end_transaction(self, producer: ProducerId, committed: bool, newer: int, coordinator: int) -> None:
        """Also where none is open, and of producers that nobody knows."""
        epoch = self.epochs[producer] = self.epochs.get(producer, 0) + newer
        marker = EndMarker(committed, Epoch(coordinator))
        content = marker_batch(producer, ProducerEpoch(epoch), marker, TimestampMs(1_000))
        self._append(Batch(1, Epoch(0), 0, producer, ProducerEpoch(epoch), -1, True, marker), content)

    @rule(one=PRODUCERS, other=PRODUCERS, committed=st.booleans(), times=st.integers(1, 3))
    def whole_transactions(self, one: ProducerId, other: ProducerId, committed: bool, times: int) -> None:
        """One producer's begin and end, while another one may have one open."""
        for _ in range(times):
            self.write(one, 1, True, 0)
            self.write(other, 1, True, 0)
            self.end_transaction(one, committed, 0, 0)

    @rule(last=st.integers(0, 7))
    def cut(self, last: int) -> None:
        """A follower finds that its leader has other batches."""
        self._keep(max(len(self.log) - last, 0))
        self.files.truncate_to(Offset(self.end))
        assert self._known(self.files.transactions_left()) == self._known(self.read())

    def _keep(self, count: int) -> None:
        del self.log[count:]

    @rule()
    def flush(self) -> None:
        self.files.flush(at_ms(0).monotonic)

    @rule()
    def checkpoint(self) -> None:
        self.directory.checkpoint_logs()

    # ---- stops

    @rule()
    def stop(self) -> None:
        self.directory.close({}, None)
        self._open(self.disk)
        assert self.files.log.end_offset == self.end

    @rule(survives=st.sampled_from(Survives), share=st.floats(0, 1))
    def lose_power(self, survives: Survives, share: float) -> None:
        self._open(self.disk.after_power_loss(survives, int(share * self.disk.unsynced_names)))
        lost = self.end - self.files.log.end_offset
        self._keep(next(kept for kept in range(len(self.log) + 1) if sum_of(self.log[kept:]) == lost))
        assert self.files.log.end_offset == self.end

    def _open(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.directory = LogDirectory.open("/logs", disk, "cluster", 1)
        self.files = self.directory.open_partition("topic", 0, self.config, at_ms(0))

    # ---- what must hold

    @staticmethod
    def _known(state: PartitionTransactions) -> object:
        """All but ends that may not be committed; of each producer's batches the last one."""
        entries = [one._replace(batches=one.batches[-1:]) for one in state.producers]
        return entries, sorted(state.ongoing)

    @invariant()
    def the_same_is_known(self) -> None:
        assert self._known(self.files.transactions()) == self._known(self.read())

    @invariant()
    def the_same_is_noted_as_aborted(self) -> None:
        assert tuple(self.files.aborted(Offset(0))) == self.read().aborted

    @invariant()
    def the_same_is_stable(self) -> None:
        offsets = [
            last_stable_offset(TRANSACTIONS_NEXT, one._replace(unreplicated=()), Offset(0), Offset(self.end))
            for one in (self.files.transactions(), self.read())
        ]
        assert offsets[0] == offsets[1]

    @invariant()
    def a_consumer_learns_of_all_that_is_aborted_from_where_it_reads(self) -> None:
        aborted = self.read().aborted
        for start in range(0, self.end, 5):
            found = aborted_between(TRANSACTIONS_NEXT, self.files.aborted(Offset(start)), Offset(start), Offset(self.end))
            assert set(found) >= {one for one in aborted if one.last_offset >= start}


def test_transactions_in_files_beside_a_plain_log() -> None:
    run_state_machine_as_test(
        TransactionsMachine, settings=settings(max_examples=60, stateful_step_count=50, deadline=None, derandomize=True)
    )


@pytest.mark.slow
@pytest.mark.nightly
def test_transactions_in_files_beside_a_plain_log_for_long() -> None:
    run_state_machine_as_test(
        TransactionsMachine, settings=settings(max_examples=600, stateful_step_count=60, deadline=None)
    )
