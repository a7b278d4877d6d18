"""The live view, taken from a real broker."""

import asyncio
from pathlib import Path

from rich.console import Console

from kspec.cli.broker.cluster_view import table
from kspec.impl.records.record import new_batch
from kspec.trials.cluster.view import ClusterProbe, PartitionView, ReportedReplica
from tests.impl.broker.process import BrokerClient, BrokerProcess


def seen(ports: dict[int, tuple[str, int]], only: str | None = None, *, calm: bool = False) -> list[PartitionView]:
    """The view of one look; of a cluster in which nothing happens, a second look over the same connection shows the same."""

    async def look() -> list[PartitionView]:
        view = ClusterProbe(ports)
        try:
            first = await view.partitions(only)
            assert not calm or await view.partitions(only) == first
            return first
        finally:
            view.close()

    return asyncio.run(look())


def test_end_and_high_watermark_of_each_partition(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path / "logs", "--override", "node.id=1", traced=False) as broker,
        BrokerClient(broker.port) as client,
    ):
        client.create("one", 2)
        client.create("two")
        client.produce("one", new_batch([(1, b"k", b"v")] * 3), partition=1)
        here = {1: ("127.0.0.1", broker.port)}
        found = seen({**here, 2: ("127.0.0.1", 1)}, calm=True)
        shown = {(one.topic, one.partition): (one.leader, one.isr, dict(one.seen)) for one in found}
        assert shown == {
            ("one", 0): (1, (1,), {1: ReportedReplica(0, 0)}),
            ("one", 1): (1, (1,), {1: ReportedReplica(3, 3)}),
            ("two", 0): (1, (1,), {1: ReportedReplica(0, 0)}),
        }
        assert [one.topic for one in seen(here, "two")] == ["two"]
    assert seen(here) == []


def test_the_table_has_a_column_for_each_broker_and_says_who_does_not_answer() -> None:
    one = PartitionView("t", 0, 2, 7, (1, 2, 3), (3, 2), {2: ReportedReplica(10, 9), 3: ReportedReplica(9, None)})
    console = Console(width=100)
    with console.capture() as captured:
        console.print(table([one, one._replace(partition=1, leader=-1, replicas=(1, 2))], 5))
        console.print(table([one, one], 1))
    text = captured.get()
    assert [part.strip() for part in text.splitlines()[4].strip("│").split("│")] == [
        *("t-0", "2", "7", "2, 3"),
        *("no answer", "10 / 9", "9 / ?"),
    ]
    assert [part.strip() for part in text.splitlines()[5].strip("│").split("│")][1:] == [
        *("none", "7", "2, 3"),
        *("no answer", "10 / 9", ""),
    ]
    assert "and 1 more" in text
