"""What a broker does from time to time: checkpoints, retention, flushing, closing idle connections."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from impl.records.compression import CompressionError
from impl.records.record import RecordError
from impl.server.broker import Broker
from impl.server.clock import now_ms
from impl.storage import LogDirectory, PartitionFiles, StorageError
from spec.broker.leader.deletion import apply_retention
from spec.broker.roles import producers_expired

LOG = logging.getLogger("kspec.housekeeping")


class Housekeeping:
    """Timers of one broker; each calls its function again and again."""

    def __init__(self, broker: Broker, directory: LogDirectory, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._directory = directory
        self._loop = loop
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._flushing: set[PartitionFiles] = set()
        self._checkpoints = ThreadPoolExecutor(1)
        config = broker.core.config
        self._every(config["replica.high.watermark.checkpoint.interval.ms"], self._checkpoint_high_watermarks)
        self._every(config["log.flush.offset.checkpoint.interval.ms"], self._checkpoint_logs)
        self._every(config["log.retention.check.interval.ms"], self._retain)
        self._every(config["producer.id.expiration.check.interval.ms"], self._expire_producers)
        self._every(1_000, self._clean_up)
        if config["log.cleaner.enable"]:
            self._every(max(config["log.cleaner.backoff.ms"], 100), self._compact)
        self._every(config["offsets.retention.check.interval.ms"], self._expire_offsets)
        if config["connections.max.idle.ms"] > 0:
            self._every(min(config["connections.max.idle.ms"], 10_000), self._close_idle)

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
        self._checkpoints.shutdown()

    def _checkpoint_high_watermarks(self) -> None:
        marks = self._broker.replicas.high_watermarks()
        self._write("the high watermarks", lambda: self._directory.checkpoint_high_watermarks(marks))

    def _checkpoint_logs(self) -> None:
        self._write("the recovery points", self._directory.checkpoint_logs)

    def _write(self, what: str, task: Callable[[], None]) -> None:
        """Write a checkpoint in a thread: the disk may take long, and clients do not wait for it."""

        def done(future: "Future[None]") -> None:
            if future.exception() is not None:
                LOG.error("%s cannot be written: %s", what, future.exception())

        self._checkpoints.submit(task).add_done_callback(done)

    def _retain(self) -> None:
        """Delete old segments, as far as `spec` allows."""
        core, now = self._broker.core, now_ms()
        for replica in list(core.replicas.values()):
            local = replica.partition.local
            wanted = replica.files.retention_offset(local.high_watermark, now)
            if wanted > local.log.start_offset:
                step = core.step(apply_retention, None, replica.partition, wanted)
                self._broker.carry_out(core.take(replica, step, now).effects)

    def _expire_producers(self) -> None:
        now = now_ms()
        for replica in list(self._broker.core.replicas.values()):
            replica.partition = producers_expired(replica.partition, replica.files.expire_producers(now))

    def _expire_offsets(self) -> None:
        self._broker.carry_out(self._broker.groups.expire_offsets(now_ms()))

    def _clean_up(self) -> None:
        now = now_ms()
        for files in self._directory.to_flush(now):
            if files not in self._flushing:
                self._flush(files)
        self._directory.clean_up(now)

    def _flush(self, files: PartitionFiles) -> None:
        """Flush in a thread: the disk may take long, and clients do not wait for it."""
        job = files.flush_job()
        self._flushing.add(files)

        def done(future: "asyncio.Future[None]") -> None:
            self._flushing.discard(files)
            if future.cancelled() or future.exception() is not None:
                LOG.error("%s-%d cannot be flushed: %s", files.topic, files.partition, future)
            else:
                files.flushed(job, now_ms())

        self._loop.run_in_executor(None, job.run).add_done_callback(done)

    def _compact(self) -> None:
        """Compact the first log that is worth it; the others have their turn at the next times.

        A log with records that cannot be read is left alone from then on. **Kafka:**
        `LogCleanerManager.markPartitionUncleanable`.
        """
        for replica in list(self._broker.core.replicas.values()):
            if not replica.config.compacts or replica.unreadable:
                continue
            try:
                if self._directory.compact(replica.files, replica.partition.local.high_watermark, now_ms()):
                    LOG.info("compacted %s-%d", *replica.place)
                    return
            except (RecordError, CompressionError) as error:
                LOG.error("%s-%d is compacted no more, its records cannot be read: %s", *replica.place, error)
                replica.unreadable = True

    def _close_idle(self) -> None:
        limit = self._broker.core.config["connections.max.idle.ms"] / 1000
        for connection in list(self._broker.connections):
            if time.monotonic() - connection.last_used > limit and not connection.unanswered:
                connection.close()
