"""The epoch files alone are lost, or behind (KAFKA-16541, KAFKA-20961): a start makes them anew from the batches."""

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from kspec.cli.main import cli
from kspec.impl.storage import loading
from kspec.spec.broker import recovery
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory, describes_any
from kspec.spec.values import Offset
from kspec.trials.simulated.runs import run
from tests.trials.simulated.test_runs import NEXT, setup

STEPS = 2_500


@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_keeps_its_promises_without_epoch_files(seed: int) -> None:
    outcome = run(replace(setup(seed), loses_epoch_files=True), STEPS)
    assert outcome.broken is None, outcome.broken


def believed(*given: Any) -> bool:
    """A weakened rule: the file is believed. It is no release's, so the epochs in memory are looked at."""
    return describes_any(*given)


def from_the_file(
    file: EpochHistory, start_offset: Offset, end_offset: Offset, found: tuple[EpochEntry, ...]
) -> EpochHistory:
    """A weakened rule: batches behind the file are not looked at."""
    return file.truncate_from_end(end_offset).truncate_from_start(start_offset)


@pytest.mark.parametrize("weakened", ["describes", "recovered_epochs"])
def test_a_weakened_rule_of_recovery_breaks_a_promise(weakened: str, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = NEXT
    if weakened == "describes":
        protocol = replace(NEXT, believes_epochs=believed)
    else:
        assert hasattr(recovery, weakened)
        monkeypatch.setattr(loading, weakened, from_the_file)
    for seed in range(10):
        outcome = run(replace(setup(seed, protocol), loses_epoch_files=True), STEPS)
        if outcome.broken is not None:
            assert outcome.broken.name == "EpochsOfLog"
            return
    raise AssertionError("no promise was broken")


def test_who_believes_lost_files_is_out_of_all_isrs_before_it_truncates() -> None:
    """With eligible leader replicas an unclean stop ends the membership; what is truncated is copied from the leader."""
    misled = replace(setup(1, replace(NEXT, believes_epochs=believed)), loses_epoch_files=True)
    broken = run(misled, STEPS).broken
    assert broken is not None
    assert broken.name == "EpochsOfLog"
    released = replace(setup(1, replace(NEXT, believes_epochs=describes_any)), loses_epoch_files=True)
    assert run(released, STEPS).broken is None


def test_the_command_loses_epoch_files() -> None:
    outcome = run(replace(setup(1), loses_epoch_files=True), STEPS)
    assert any("leader-epoch-checkpoint is lost" in told for told in outcome.told)
    command = [
        "simulate-cluster",
        "--steps",
        str(STEPS),
        "--workers",
        "1",
        "--json",
        "--lose-epoch-files",
        "--controllers",
        "1",
    ]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0
    assert json.loads(done.stdout) == outcome.as_json()
