"""`kspec features` on one node of ours and of Apache Kafka's, whose only controller is named by its settings."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kspec.cli.main import cli
from kspec.conformance.kafka.single import SingleKafka
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerProcess
from tests.limits.marks import marked
from tests.trials.cluster.running import until

pytestmark = pytest.mark.slow

KRAFT = "kraft.version"
RAISED_FIRST = "share.version"
"""A feature at which Kafka looks after `kraft.version`: its map has another order than the request."""


def ours(folder: Path) -> AbstractContextManager[BrokerProcess]:
    return BrokerProcess(folder / "logs")


def kafkas(folder: Path) -> AbstractContextManager[SingleKafka]:
    return SingleKafka(jars_or_skip(NEWEST), folder / "kafka", {})


NODES = marked([ours, kafkas], nightly=[kafkas])


def tool(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["features", "--bootstrap-server", address, *arguments])


def level(address: str) -> int:
    """The level of `kraft.version`."""
    told = tool(address, "describe")
    assert told.exit_code == 0, told.output
    lines = [dict(part.split(": ", 1) for part in line.split("\t")) for line in told.stdout.splitlines()]
    assert [line["Feature"] for line in lines] == sorted(line["Feature"] for line in lines)
    (one,) = [line for line in lines if line["Feature"] == KRAFT]
    assert (one["SupportedMinVersion"], one["SupportedMaxVersion"]) == ("0", "1")
    return int(one["FinalizedVersionLevel"])


@pytest.mark.parametrize("node", NODES)
def test_levels_are_described_and_raised(
    node: Callable[[Path], AbstractContextManager[SingleKafka]], tmp_path: Path
) -> None:
    with node(tmp_path) as running:
        address = running.address
        assert level(address) == 0
        dry = tool(address, "upgrade", "--feature", f"{KRAFT}=1", "--dry-run")
        assert (dry.exit_code, dry.stdout) == (0, f"{KRAFT} can be upgraded to 1.\n")
        higher = tool(address, "upgrade", "--feature", f"{KRAFT}=2")
        said = f"Could not upgrade {KRAFT} to 2. INVALID_UPDATE_VERSION"
        assert (higher.exit_code, higher.stdout.startswith(said)) == (1, True), higher.output
        assert level(address) == 0
        done = tool(address, "upgrade", "--feature", f"{KRAFT}=1")
        assert (done.exit_code, done.stdout) == (0, f"{KRAFT} was upgraded to 1.\n")
        until(lambda: level(address) == 1)
        assert tool(address, "upgrade", "--feature", f"{KRAFT}=1").exit_code == 0, "once more"
        for down in (("downgrade", f"{KRAFT}=0"), ("downgrade", f"{KRAFT}=0", "--unsafe"), ("disable", KRAFT)):
            refused = tool(address, down[0], "--feature", *down[1:])
            assert refused.exit_code == 1, refused.output
        assert level(address) == 1
        if isinstance(running, BrokerProcess):
            running.restart()
            until(lambda: level(address) == 1)


@pytest.mark.parametrize("node", NODES)
def test_a_request_that_is_refused_raises_nothing_but_in_kafka(
    node: Callable[[Path], AbstractContextManager[SingleKafka]], tmp_path: Path
) -> None:
    """See docs/findings/refused-upgrade.md."""
    with node(tmp_path) as running:
        address = running.address
        refused = tool(address, "upgrade", "--feature", f"{KRAFT}=1", "--feature", f"{RAISED_FIRST}=99")
        assert (refused.exit_code, "2 out of 2 operation(s) failed" in refused.output) == (1, True), refused.output
        if node is kafkas:
            until(lambda: level(address) == 1)
        else:
            assert tool(address, "upgrade", "--feature", "transaction.version=2").exit_code == 0, "which is the level"
            assert level(address) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("upgrade", "--feature", "kraft.version"), "NAME=LEVEL"),
        (("upgrade", "--feature", "kraft.version=-1"), "NAME=LEVEL"),
        (("upgrade", "--feature", "=1"), "NAME=LEVEL"),
        (("upgrade", "--feature", "kraft.version=99999"), "NAME=LEVEL"),
        (("upgrade", "--feature", "a=1", "--feature", "a=2"), "twice"),
        (("upgrade",), "--feature"),
        (("disable", "--feature", " "), "NAME=LEVEL"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[str, ...], said: str) -> None:
    result = tool("127.0.0.1:1", *arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_it_needs_one_of_brokers_and_controllers() -> None:
    result = CliRunner().invoke(cli, ["features", "describe"])
    assert result.exit_code == 2
    assert "--bootstrap-controller" in result.output
