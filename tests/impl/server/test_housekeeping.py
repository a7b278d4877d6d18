"""Housekeeping holds nobody up."""

from pathlib import Path
from random import Random

import pytest

from kspec.impl.records.record import new_batch
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.limits.turns import Turns

KEYS, RECORDS, BATCHES = 20_000, 2_000, 60
LEAST_SERVED = 20
"""Requests of a neighbour that are answered at least, while a log is compacted that takes a second and more."""


TRIES = 4
"""Logs that are compacted one after the other until the neighbour is served so often: the machine may be busy."""


@pytest.mark.slow
def test_a_neighbour_is_served_while_a_log_is_compacted(tmp_path: Path) -> None:
    random = Random(1)
    cleaner = ("log.cleaner.backoff.ms=500",)
    with BrokerProcess(tmp_path / "logs", overrides=cleaner, traced=False) as broker, BrokerClient(broker.port) as client:
        served: list[int] = []
        for number in range(TRIES):
            topic = f"compacted{number}"
            client.create(topic, cleanup_policy="compact", segment_bytes=str(4 << 20), min_cleanable_dirty_ratio="0.01")
            for _ in range(BATCHES):
                records = [(1, b"%d" % random.randrange(KEYS), bytes(100)) for _ in range(RECORDS)]
                assert client.produce(topic, new_batch(records)).error_code == 0
            folder = tmp_path / "logs" / f"{topic}-0"
            served.append(served_while_compacted(broker, client, folder))
            wait_until(lambda folder=folder: not any(one.name.endswith(".cleaned") for one in folder.iterdir()))
            assert client.fetch(topic, 0).high_watermark == BATCHES * RECORDS
            if served[-1] >= LEAST_SERVED:
                break
    assert served[-1] >= LEAST_SERVED, served


def served_while_compacted(broker: BrokerProcess, client: BrokerClient, folder: Path) -> int:
    """The number of requests that are answered while files of this partition are rewritten."""
    served, turns = 0, Turns()
    while f"compacted {folder.name}" not in broker.text_of_log():
        turns.go()
        client.call("ApiVersions", 0)
        served += any(one.name.endswith(".cleaned") for one in folder.iterdir())
    return served
