"""Changes of metadata under faults: what is lost is found, and whose log counts."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from kspec.impl.metadata.log import MetadataLog, batch_of
from kspec.impl.metadata.records import LogRecord
from kspec.impl.storage import RealDisk
from kspec.impl.wire.values import Message
from kspec.spec.quorum.replica import ElectionState
from kspec.spec.values import BrokerId, Epoch
from kspec.trials.cluster.plan import Node, nodes_of, ports_from
from kspec.trials.faults.controllers import changes
from kspec.trials.faults.controllers.changes import BASE, MetadataChanges
from kspec.trials.faults.controllers.written import WrittenMetadata
from kspec.trials.faults.load import Recorder
from kspec.trials.history.anomalies import anomalies_in
from kspec.trials.history.events import ACKNOWLEDGED, CommitOutcome, CommitStart
from tests.times import at_ms

PLACE = ("127.0.0.1", 1)
SETTING = "metadata/t"


@pytest.mark.parametrize(("known", "found"), [(BASE + 2, []), (BASE + 1, ["lost-commit"]), (None, ["lost-commit"])])
def test_an_acknowledged_change_that_is_not_there_in_the_end_is_lost(
    known: int | None, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def retention(place: object, topic: str) -> int | None:
        return known

    async def topics_at(place: object) -> frozenset[str]:
        return frozenset({"t"})

    monkeypatch.setattr(changes, "retention", retention)
    monkeypatch.setattr(changes, "topics_at", topics_at)
    monkeypatch.setattr(changes, "LEARNED_S", 0.0)
    recorder = Recorder()
    load = MetadataChanges([PLACE], "t", recorder, seed=1)
    for number in (1, 2):
        recorder.note(partial(CommitStart, "changes", SETTING, number))
        recorder.note(partial(CommitOutcome, SETTING, number, ACKNOWLEDGED, None))
    asyncio.run(load.read_at_the_end())
    assert [one.name for one in anomalies_in(recorder.events)] == found


def written(node: Node, epoch: int, leader: int, *topics: str) -> None:
    """Let a controller have a log with these topics, and an election."""
    log = MetadataLog(RealDisk(), node.data, at_ms(0))
    records = [LogRecord("TopicRecord", Message(name=topic, topic_id=topic.encode().ljust(16))) for topic in topics]
    log.append(log.end_offset, Epoch(epoch), batch_of(records, at_ms(0)), at_ms(0))
    log.keep_election(ElectionState(Epoch(epoch), BrokerId(leader)), frozenset({BrokerId(101), BrokerId(102)}))
    log.close()


def test_the_log_of_the_last_leader_counts(tmp_path: Path) -> None:
    first, second, *_ = nodes_of(tmp_path, 1, ports_from(1000, 1, 3), {})
    metadata = WrittenMetadata([first, second])
    assert list(metadata.image().topics) == []
    written(first, 1, 101, "a")
    assert list(metadata.image().topics) == ["a"]
    written(second, 2, 102, "a", "b")
    assert list(metadata.image().topics) == ["a", "b"]
    assert metadata.active is second
