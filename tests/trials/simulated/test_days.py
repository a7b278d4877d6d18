"""Runs of a given time with rolling restarts: no client is told anything."""

import json
from random import Random

import pytest
from click.testing import CliRunner

from kspec.cli.main import cli
from kspec.impl.broker.calls import Ask
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from kspec.trials.simulated.clients.client import ClientEnvironment
from kspec.trials.simulated.clients.partitions import ProducerClient
from kspec.trials.simulated.clock import VirtualClock
from kspec.trials.simulated.kinds.stops import RollingRestart
from kspec.trials.simulated.network import Network, NetworkClient, Take
from kspec.trials.simulated.plan import MINUTE_MS, restarts


def simulated(*arguments: str) -> dict[str, object]:
    done = CliRunner().invoke(cli, ["simulate-cluster", "--workers", "1", "--json", *arguments])
    assert done.exit_code == 0, done.output
    outcome: dict[str, object] = json.loads(done.stdout)
    return outcome


def test_rolling_restarts_come_at_their_times() -> None:
    times = restarts(60)
    assert [(next(times).at_ms, next(times).kind) for _ in range(2)] == [
        (60 * MINUTE_MS, RollingRestart),
        (180 * MINUTE_MS, RollingRestart),
    ]


@pytest.mark.slow
def test_clients_come_through_rolling_restarts_without_an_error_that_they_would_report() -> None:
    outcome = simulated("--hours", "0.06", "--roll-every", "1")
    assert outcome["broken"] is None
    assert outcome["faults"] == [RollingRestart.words] * 3
    assert outcome["reported"] == []
    assert 100 < int(str(outcome["longest_ms"])) < 2_000


def test_a_run_of_some_time_has_its_faults() -> None:
    outcome = simulated("--hours", "0.005")
    assert int(str(outcome["virtual_ms"])) >= 18_000
    assert outcome["faults"]


class NoNetwork(Network):
    """Nobody answers."""

    def ask(self, client: NetworkClient, asked: Ask, take: Take) -> None:
        """Take no notice."""


def test_an_error_that_clients_do_not_repeat_is_noted() -> None:
    clock, random = VirtualClock(), Random(1)
    network = NoNetwork(clock, random, (1, 1), 0.0, coded=False)
    producer = ProducerClient(1, ClientEnvironment(clock, network, random, [1], "t", (1, 1), 0.0), 0, None)
    for error in (Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_ENOUGH_REPLICAS, Error.MESSAGE_TOO_LARGE):
        part = Message(error_code=error.value, base_offset=-1)
        producer._sent(Message(responses=[Message(partition_responses=[part])]))
    assert producer.reported == {Error.MESSAGE_TOO_LARGE}
