"""This project's broker in runs of model `transactions`: those that have a name, and random walks, over kill -9, too."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.transactions.prompt import release_of
from kspec.conformance.transactions.replay import TransactionReplay, set_level
from kspec.conformance.transactions.runs import NAMED, FoundRun, found_run, walk
from kspec.conformance.transactions.session import SETTINGS
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerProcess

pytestmark = pytest.mark.slow

RULES = {"release": release_of(NEWEST), "mutant": None}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    overrides = [f"{name}={value}" for name, value in SETTINGS.items()]
    with BrokerProcess(tmp_path / "logs", overrides=overrides) as running:
        yield running


def departures(broker: BrokerProcess, level: int, runs: Iterable[FoundRun]) -> list[str]:
    """The departures of the broker from these runs, in a version of transactions."""
    codec = Codec(jars_or_skip(NEWEST))

    async def replayed() -> list[str]:
        connection = await NodeConnection.open(codec, broker.port)
        await set_level(connection, level)
        await connection.close()
        found = []
        for number, run in enumerate(runs):
            result = await TransactionReplay(broker, codec, run, level, f"run-{number}").replay()
            found += [f"{run.run.name}: {result.departure.words}"] if result.departure is not None else []
        return found

    return asyncio.run(replayed())


@pytest.mark.parametrize("level", [1, 2])
def test_named_runs_and_walks_do_not_depart(broker: BrokerProcess, level: int) -> None:
    named = [found_run(one, RULES, level) for one in NAMED.values() if level in one.levels]
    assert departures(broker, level, [*named, *(walk(seed, RULES, level) for seed in range(1, 7))]) == []


@pytest.mark.nightly
@pytest.mark.parametrize("level", [1, 2])
def test_many_walks_do_not_depart(broker: BrokerProcess, level: int) -> None:
    assert departures(broker, level, (walk(seed, RULES, level) for seed in range(1001, 1151))) == []


def test_other_rules_than_its_own_are_a_departure(broker: BrokerProcess) -> None:
    """It has the rules of 4.4, where a late marker of version 2 is refused."""
    (found,) = departures(broker, 2, [found_run(NAMED["late-marker"], {"release": "4.1", "mutant": None}, 2)])
    assert found.startswith("late-marker: departs at step ")
