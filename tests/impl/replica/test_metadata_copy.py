"""A broker's copy of the metadata log: it is not kept for ever, and a start goes on from it."""

from collections import Counter

import pytest

from kspec.impl.broker.calls import Ask
from kspec.impl.metadata.files import FOLDER, replay_into
from kspec.spec.controller.protocol import Controller
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.network import Network, NetworkClient, Take
from kspec.trials.simulated.plan import SNAPSHOT_BYTES, conditions_of
from kspec.trials.simulated.setup import RunSetup

LIMIT = 1_500
"""Bytes of the copy after which a snapshot is taken."""


def test_a_long_copy_gives_way_to_a_snapshot() -> None:
    conditions = conditions_of(3)._replace(snapshot_bytes=LIMIT)
    setup = RunSetup(3, dict.fromkeys((1, 2, 3), BROKER_NEXT), Controller(KRAFT_NEXT), conditions=conditions)
    cluster = SimulatedCluster(setup)
    cluster.run(2_000)
    end_offset = cluster.controller.core.image.spec.end_offset
    for node in cluster.brokers.values():
        copy = node.shell.metadata
        assert copy.snapshot.end_offset > 0, "a snapshot was taken, by this broker or before by the controller"
        assert copy.size < 2 * LIMIT
        image = copy.restored()
        replay_into(image, copy.batches())
        assert image.spec.end_offset == end_offset
        names = [name for name in node.disk.listdir(f"/sim/{node.node_id}/{FOLDER}") if name.endswith(".checkpoint")]
        assert len(names) == 1, "the snapshot before is gone"


def test_a_broker_that_was_away_asks_for_a_snapshot_in_a_seed_with_many(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = RunSetup(29, dict.fromkeys((1, 2, 3), BROKER_NEXT), Controller(KRAFT_NEXT))
    assert setup.conditions_now.snapshot_bytes == min(SNAPSHOT_BYTES)
    cluster = SimulatedCluster(setup)
    asked: Counter[str] = Counter()

    def ask(client: NetworkClient, request: Ask, take: Take) -> None:
        asked[request.api] += 1
        Network.ask(cluster.network, client, request, take)

    monkeypatch.setattr(cluster.network, "ask", ask)
    cluster.run(2_000)
    assert asked["FetchSnapshot"] > 0
