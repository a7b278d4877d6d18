"""Periodic work of a broker: checkpoints, retention, flushing, closing idle connections.

Each task looks at the partitions that have changed since it looked last, and at those in which the time alone may have
brought work. For the others nothing is done, however many there are.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from kspec.impl.broker.replica import PartitionReader, Replica
from kspec.impl.records.compression import CompressionError
from kspec.impl.records.record import RecordError
from kspec.impl.server import clock
from kspec.impl.server.broker import BrokerShell
from kspec.impl.storage import InvalidSegmentError, LogDirectory, PartitionFiles, StorageError
from kspec.impl.storage.cleaner import Steps
from kspec.spec.broker.leader.deletion import apply_retention
from kspec.spec.broker.partition import last_stable_offset_of
from kspec.spec.broker.roles import producers_expired
from kspec.spec.values import Instant

LOG = logging.getLogger("kspec.housekeeping")

COMPACTS_S = 0.005
"""The length of a slice of compaction, and of the pause for requests after it (s)."""


def apply_retention_to(broker: BrokerShell, replica: Replica, now: Instant) -> None:
    """Delete old segments of a replica whose files can be written, as far as `spec` allows."""
    core = broker.core
    core.handle_postponed(replica)
    local = replica.partition.local
    wanted = replica.files.retention_offset(local.high_watermark, now.timestamp)
    if wanted > local.log.start_offset:
        step = core.step(apply_retention, None, replica.partition, wanted)
        broker.carry_out(core.take(replica, step, now).effects)


class Housekeeping:
    """Timers of one broker; each calls its function again and again."""

    def __init__(self, broker: BrokerShell, directory: LogDirectory, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._directory = directory
        self._loop = loop
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._flushing: set[PartitionFiles] = set()
        self._checkpoints = ThreadPoolExecutor(1)
        self._compacting: tuple[Replica, Steps[bool]] | None = None
        """The log that is being compacted, and the work that is left."""
        config, changes = broker.core.config, broker.core.changes
        self._moved, self._written, self._logged = changes.reader(), changes.reader(), changes.reader()
        self._to_retain, self._to_expire, self._to_compact = changes.reader(), changes.reader(), changes.reader()
        for replica in broker.core.replicas.values():
            changes.note(replica)
        self._every(config.number("replica.high.watermark.checkpoint.interval.ms"), self._checkpoint_high_watermarks)
        self._every(config.number("log.flush.offset.checkpoint.interval.ms"), self._checkpoint_logs)
        self._every(config.number("log.retention.check.interval.ms"), self._retain)
        self._every(config.number("producer.id.expiration.check.interval.ms"), self._expire_producers)
        self._every(1_000, self._clean_up)
        if config.flag("log.cleaner.enable"):
            self._every(max(config.number("log.cleaner.backoff.ms"), 100), self._compact)
        self._every(config.number("offsets.retention.check.interval.ms"), self._expire_offsets)
        if config.number("connections.max.idle.ms") > 0:
            self._every(min(config.number("connections.max.idle.ms"), 10_000), self._close_idle)

    def _every(self, interval_ms: int, task: Callable[[], None]) -> None:
        def go() -> None:
            self._timers[task.__name__] = self._loop.call_later(interval_ms / 1000, go)
            try:
                task()
            except (OSError, StorageError) as error:
                LOG.error("%s: %s", task.__name__, error)

        self._timers[task.__name__] = self._loop.call_later(interval_ms / 1000, go)

    def stop(self) -> None:
        """Stop all timers, and wait until nothing is written any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._end_compacting()
        self._checkpoints.shutdown()

    def _checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks, if one may have moved: those that have, beside the others as they were written."""
        marks = self._broker.replicas.high_watermarks_of(self._moved.take())
        if self._directory.differ_from_checkpoint(marks):
            self._write("the high watermarks", lambda: self._directory.checkpoint_high_watermarks(marks))

    def _checkpoint_logs(self) -> None:
        """Write the recovery points and log starts, if a log has changed."""
        if self._logged.take():
            self._write("the recovery points", self._directory.checkpoint_logs)

    def _write(self, what: str, task: Callable[[], None]) -> None:
        """Write a checkpoint in a thread: the disk may take long, and clients do not wait for it."""

        def done(future: "Future[None]") -> None:
            if future.exception() is not None:
                LOG.error("%s cannot be written: %s", what, future.exception())

        self._checkpoints.submit(task).add_done_callback(done)

    def _retain(self) -> None:
        self._each(self._to_retain, self._retain_one, "cannot be looked at for old records")

    def _retain_one(self, replica: Replica) -> bool:
        """Delete old segments, as far as `spec` allows. A log with records is looked at again: they become old in time."""
        apply_retention_to(self._broker, replica, clock.now())
        return replica.files.size > 0

    def _expire_producers(self) -> None:
        now_ms = clock.now().timestamp

        def expire(replica: Replica) -> bool:
            self._broker.core.become(replica, producers_expired(replica.partition, replica.files.expire_producers(now_ms)))
            return bool(replica.partition.producers)

        self._each(self._to_expire, expire, "cannot forget its producers")

    def _each(self, reader: PartitionReader, task: Callable[[Replica], bool], what_failed: str) -> None:
        """Do something for each partition that has changed, and again next time where it says so, or has failed.

        One that is offline is left alone until the next start: its files may not even be open.
        """
        replicas = self._broker.core.replicas
        for replica in reader.take():
            if replicas.get(replica.place) is not replica or replica.offline:
                continue
            try:
                again = task(replica)
            except (OSError, StorageError) as error:
                LOG.error("%s-%d %s: %s", *replica.place, what_failed, error)
                again = True
            if again:
                reader.keep(replica)

    def _expire_offsets(self) -> None:
        self._broker.carry_out(self._broker.groups.expire_offsets(clock.now()))

    def _clean_up(self) -> None:
        now_ms = clock.now().monotonic

        def clean_up(replica: Replica) -> bool:
            """Flush what is due, and remove files whose time has come."""
            files = replica.files
            if files.flush_is_due(now_ms) and files not in self._flushing:
                self._flush(replica)
            files.clean_up(now_ms)
            return files.expects_work

        self._each(self._written, clean_up, "cannot be flushed or cleaned up")
        self._directory.remove_deleted(now_ms)

    def _flush(self, replica: Replica) -> None:
        """Flush in a thread: the disk may take long, and clients do not wait for it.

        A partition that cannot be flushed is offline. A later sync may succeed without what the system could not write.
        **Kafka:** `UnifiedLog.flush`, `LocalLog.maybeHandleIOException`: the log directory is offline.
        """
        files = replica.files
        job = files.flush_job()
        self._flushing.add(files)

        def done(future: "asyncio.Future[None]") -> None:
            self._flushing.discard(files)
            if future.cancelled():
                return
            error = future.exception()
            if error is not None:
                LOG.error("%s-%d is offline, since it cannot be flushed: %s", files.topic, files.partition, error)
                replica.fail()
            else:
                files.flushed(job, clock.now().monotonic)
                self._logged.keep(replica)  # its recovery point is another

        self._loop.run_in_executor(None, job.run).add_done_callback(done)

    def _compact(self) -> None:
        """Begin to compact the first log that is worth it; the others have their turn at the next times.

        A log with records that cannot be read is left alone from then on. **Kafka:**
        `LogCleanerManager.markPartitionUncleanable`.
        """
        if self._compacting is not None:
            return

        def compact(replica: Replica) -> bool:
            if not replica.config.compacts or replica.unreadable:
                return False
            if self._compacting is None:
                stable_end = last_stable_offset_of(self._broker.core.broker(replica), replica.partition)
                steps = self._directory.compact_by_batch(replica.files, stable_end, clock.now())
                self._compacting = (replica, steps)
                self._go_on_compacting()
            return len(replica.files.segments) > 1  # of one segment nothing is compacted: it is written to

        self._each(self._to_compact, compact, "cannot be compacted")

    def _go_on_compacting(self) -> None:
        """Compact for a few milliseconds; then others have their turn for as long."""
        assert self._compacting is not None
        replica, steps = self._compacting
        if self._broker.core.replicas.get(replica.place) is not replica or replica.offline:
            self._end_compacting()
            return
        end = time.monotonic() + COMPACTS_S
        try:
            while time.monotonic() < end:
                next(steps)
        except StopIteration as ended:
            self._compacting = None
            if ended.value:
                LOG.info("compacted %s-%d", *replica.place)
                self._broker.core.changes.note(replica)
            return
        except (RecordError, CompressionError, InvalidSegmentError) as error:
            LOG.error("%s-%d is compacted no more, its records cannot be read: %s", *replica.place, error)
            replica.unreadable, self._compacting = True, None
            return
        except (OSError, StorageError) as error:
            LOG.error("%s-%d cannot be compacted: %s", *replica.place, error)
            self._compacting = None
            return
        self._timers["go on compacting"] = self._loop.call_later(COMPACTS_S, self._go_on_compacting)

    def _end_compacting(self) -> None:
        """Leave the log that is being compacted as it is."""
        if self._compacting is not None:
            (_, steps), self._compacting = self._compacting, None
            with suppress(OSError, StorageError):  # its folder may be gone
                steps.close()

    def _close_idle(self) -> None:
        limit = self._broker.core.config.number("connections.max.idle.ms") / 1000
        for connection in list(self._broker.connections):
            if time.monotonic() - connection.last_used > limit and not connection.unanswered:
                connection.close()
