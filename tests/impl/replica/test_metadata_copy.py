"""A broker's copy of the metadata log: it is not kept for ever, and a start goes on from it."""

from collections import Counter

import pytest

from impl.broker.calls import Ask
from impl.metadata.files import FOLDER, replay_into
from impl.sim.cluster import SimulatedCluster
from impl.sim.network import Client, Network, Take
from impl.sim.plan import SNAPSHOT_BYTES, weather_of
from impl.sim.setup import Setup
from spec.controller.protocol import Controller
from spec.releases.broker import BROKER_NEXT
from spec.releases.kraft import KRAFT_NEXT

LIMIT = 1_500
"""Bytes of the copy after which a snapshot is taken."""


def test_a_long_copy_gives_way_to_a_snapshot() -> None:
    weather = weather_of(3)._replace(snapshot_bytes=LIMIT)
    setup = Setup(3, dict.fromkeys((1, 2, 3), BROKER_NEXT), Controller(KRAFT_NEXT), weather=weather)
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
    setup = Setup(29, dict.fromkeys((1, 2, 3), BROKER_NEXT), Controller(KRAFT_NEXT))
    assert setup.surroundings.snapshot_bytes == min(SNAPSHOT_BYTES)
    cluster = SimulatedCluster(setup)
    asked: Counter[str] = Counter()

    def ask(client: Client, request: Ask, take: Take) -> None:
        asked[request.api] += 1
        Network.ask(cluster.network, client, request, take)

    monkeypatch.setattr(cluster.network, "ask", ask)
    cluster.run(2_000)
    assert asked["FetchSnapshot"] > 0
