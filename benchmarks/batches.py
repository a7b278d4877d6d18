"""The cost of a batch to a broker, by how many records it has: `python -m benchmarks.batches`.

A leader and its follower, in memory, on one core: a producer with acks=all sends batch after batch, and the follower fetches
each. Both logs are `EpochLog`, so that what a broker would read from its files is kept in a list beside them. Timed are the
handlers alone: `handle_produce`; and for a fetch `fetch_or_truncate`, `handle_fetch` and `handle_fetch_response`.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.engines import write_readme
from kspec.spec.broker.follower import fetch_or_truncate, handle_fetch_response
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Broker, Handled, Partition
from kspec.spec.broker.roles import become_follower, become_leader
from kspec.spec.broker.rules.fetcher import PendingFetch
from kspec.spec.log.batch import Batch, Batches, count_records
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.producers import LAST_SEQUENCE
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.messages.produce import ACKS_ALL, ProduceRequest
from kspec.spec.metadata import BrokerRegistration, PartitionRegistration
from kspec.spec.releases.broker import BROKER_4_0
from kspec.spec.step import Reply, Send
from kspec.spec.values import (
    NO_EPOCH,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Incarnation,
    MonotonicMs,
    PartitionEpoch,
    PartitionId,
    ProducerEpoch,
    ProducerId,
)

LEADER, FOLLOWER = BrokerId(1), BrokerId(2)
PRODUCER = ProducerId(7), ProducerEpoch(0)
RECORDS = 1_000_000
NOW = MonotonicMs(1_000)


class BatchSeconds(NamedTuple):
    """Seconds that the handlers took for each batch, in order."""

    produce: list[float]
    fetch: list[float]


def _broker(replica: BrokerId) -> Broker:
    brokers = tuple(BrokerRegistration(each, BrokerEpoch(each), Incarnation(0), fenced=False) for each in (LEADER, FOLLOWER))
    return Broker(replica, BROKER_4_0, BrokerEpoch(replica), brokers)


def _replicas() -> tuple[Partition[EpochLog], Partition[EpochLog]]:
    """The leader and the follower of an empty partition."""
    both = (LEADER, FOLLOWER)
    announced = PartitionRegistration(both, frozenset(both), LEADER, Epoch(0), PartitionEpoch(0))
    empty: Partition[EpochLog] = Partition(PartitionId(0), LocalLog(EMPTY_EPOCH_LOG))
    following = become_follower(_broker(FOLLOWER), empty, announced).state
    nothing_to_truncate = fetch_or_truncate(_broker(FOLLOWER), following, NOW).state
    return become_leader(_broker(LEADER), empty, announced, NOW).state, nothing_to_truncate


def replicate(batches: int, records: int) -> BatchSeconds:
    """Send so many batches of so many records through both replicas. Each is committed by the fetch after its own."""
    leading, following = _broker(LEADER), _broker(FOLLOWER)
    leader, follower = _replicas()
    spent, segment = BatchSeconds([], []), []
    for number in range(batches):
        batch = Batch(records, NO_EPOCH, number, *PRODUCER, number * records % (LAST_SEQUENCE + 1))
        began = time.perf_counter()
        leader = handle_produce(leading, leader, ProduceRequest(number, ACKS_ALL, batch), NOW).state
        produced = time.perf_counter()
        segment.append(batch.in_epoch(leader.leader_epoch))
        fetching = fetch_or_truncate(following, follower, NOW)
        answered = handle_fetch(leading, leader, _request(fetching), NOW)
        answer = _with_payloads(_answer(answered), (segment[number],))
        asked = PendingFetch(fetching.state.fetcher.leader_epoch, fetching.state.fetcher.fetch_offset)
        follower = handle_fetch_response(following, fetching.state, asked, answer, NOW).state
        leader = answered.state
        spent.produce.append(produced - began)
        spent.fetch.append(time.perf_counter() - produced)
    assert leader.local.log == follower.local.log, "the follower holds what the leader holds"
    assert leader.producers == follower.producers, "and knows the producer as the leader does"
    assert leader.local.log.end_offset == batches * records
    assert leader.local.high_watermark == (batches - 1) * records, "all is committed that was fetched before"
    assert len(leader.waiting) == 1, "and answered"
    return spent


def _request(step: Handled[EpochLog]) -> FetchRequest:
    (sent,) = step.effects
    assert isinstance(sent, Send)
    assert isinstance(sent.message, FetchRequest)
    return sent.message


def _answer(step: Handled[EpochLog]) -> FetchResponse:
    (answer,) = [effect.message for effect in step.effects if isinstance(effect, Reply)]
    assert isinstance(answer, FetchResponse)
    return answer


def _with_payloads(answer: FetchResponse, stored: Batches) -> FetchResponse:
    """The answer with the batches that lie in the stretch it names, as they were stored."""
    assert count_records(answer.records) == count_records(stored), "the answer names the stretch of these batches"
    return answer._replace(records=stored)


def _typical(seconds: Sequence[float]) -> float:
    """The median in microseconds."""
    return statistics.median(seconds) * 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the report and write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=1_000, help="how many batches of each size")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--long", type=int, default=20_000, help="how many batches the longest log has")
    chosen = parser.parse_args(arguments)
    sizes = (1, 100, RECORDS // chosen.batches, 1_000_000)
    replicate(chosen.batches, 1)
    runs: dict[int, list[BatchSeconds]] = {size: [] for size in sizes}
    for _ in range(chosen.runs):
        for size in sizes:
            runs[size].append(replicate(chosen.batches, size))
    rows = []
    for size in sizes:
        produce = _typical([took for run in runs[size] for took in run.produce])
        fetch = _typical([took for run in runs[size] for took in run.fetch])
        if size == 1:
            alone = produce + fetch
        rows.append(
            f"| {size:,} | {chosen.batches * size:,} | {produce:.1f} | {fetch:.1f} | {(produce + fetch) / alone:.2f}x |"
            f" {size / (produce + fetch) * 1e6:,.0f} |"
        )
    long = replicate(chosen.long, RECORDS // chosen.batches)
    first, last = slice(0, 1_000), slice(-1_000, None)
    lines = [
        f"{chosen.batches:,} batches of each size, acks=all, an idempotent producer, one follower, `EpochLog` on both sides;"
        f" one core; {chosen.runs} runs of each size took turns. Microseconds for a batch, the medians of all batches.",
        "",
        "| records in a batch | records | produce | fetch | beside batches of one | records/s |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        f"A log does not become slower with its length. Of {chosen.long:,} batches, the first thousand take"
        f" {_typical(long.produce[first]):.1f} to produce and {_typical(long.fetch[first]):.1f} to fetch,"
        f" the last thousand {_typical(long.produce[last]):.1f} and {_typical(long.fetch[last]):.1f} (medians).",
        "",
    ]
    print("\n".join(lines))
    write_readme("batches", "\n".join(lines))


if __name__ == "__main__":
    main()
