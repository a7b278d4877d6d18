"""The epoch file of a log is lost alone, or behind the log (KAFKA-16541, KAFKA-20961): `--epoch-file-losses`."""

from dataclasses import replace
from typing import Any

import pytest

from kspec.model_check.core.exploration import Exploration, Limits
from kspec.model_check.core.parameters import ParameterError
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines import compiled
from kspec.model_check.models import MODELS
from kspec.model_check.models.kafka import build
from kspec.model_check.models.kafka.stopping import epochs_at_start
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.log.stored_log import EMPTY_STORED_LOG, StoredLog
from kspec.spec.releases.broker import BROKER_NEXT, BROKER_RELEASES
from kspec.spec.values import Epoch, Record

BOUNDS: dict[str, Any] = {
    "brokers": 2,
    "min_isr": 1,
    "elections": 1,
    "epoch_file_losses": 1,
    "log": "epochs",
}
RELEASES = {one.name: one for one in BROKER_RELEASES}
OF_RECORDS = ("CommittedOnNextLeader", "AcknowledgedOnNextLeader")


def explored(release: str, names: tuple[str, ...] = (), **own: BrokerProtocol) -> Exploration:
    parameters = MODELS["kafka"].build({**BOUNDS, "release": release}).parameters
    model = build("kafka", dict(parameters), own)
    chosen = [prop for prop in model.properties if (prop.name in names if names else prop.by_default)]
    return compiled.explore(model, chosen, Limits(), workers=1, symmetry=Symmetry(model))


def violated(found: Exploration) -> dict[str, int]:
    return {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in found.verdicts if verdict.violated}


def test_a_member_of_the_isr_truncates_to_its_checkpointed_high_watermark() -> None:
    """3.7: the broker is registered anew and keeps its place in the ISR, with no epochs, and an old high watermark."""
    found = explored("3.7", OF_RECORDS)
    assert violated(found) == dict.fromkeys(OF_RECORDS, 9)
    assert "LoseEpochFile" in [step.action.name for step in found.verdicts[0].trace or () if step.action]


def test_the_rule_that_looks_at_the_batches_repairs_it() -> None:
    """3.7 with this one rule of `next`: the same bounds, exhausted."""
    repaired = replace(RELEASES["3.7"], believes_epochs=BROKER_NEXT.believes_epochs)
    found = explored("3.7", OF_RECORDS, **{"3.7": repaired})
    assert found.complete
    assert not violated(found)
    assert found.actions["LoseEpochFile"] > 0


def test_who_has_stopped_uncleanly_is_out_of_the_isr_since_4_0() -> None:
    """Eligible leader replicas: nothing committed is lost, and a leader's own view of the ISR is behind for a moment."""
    found = explored("4.4", OF_RECORDS)
    assert found.complete
    assert not violated(found)
    assert violated(explored("4.4", ("WeakIsr",))) == {"WeakIsr": 9}


def test_next_keeps_all_properties() -> None:
    """Among them: each log's epoch history is that of its records."""
    found = explored("next")
    assert found.complete
    assert not violated(found)
    assert found.actions["LoseEpochFile"] > 0
    assert "HistoryFollowsRecords" in {verdict.prop.name for verdict in found.verdicts}


def test_a_zookeeper_controller_loses_by_it_too() -> None:
    found = explored("2.1", OF_RECORDS)
    assert violated(found)


def test_a_log_of_records_has_no_epoch_file() -> None:
    with pytest.raises(ParameterError, match="--epoch-file-losses: only with --log epochs"):
        MODELS["kafka"].build({**BOUNDS, "log": "records"})


@pytest.mark.parametrize("kept", range(4))
def test_a_history_is_made_anew_from_the_records(kept: int) -> None:
    log: StoredLog = EMPTY_STORED_LOG
    for epoch in (0, 2, 2, 5):
        log = log.append((Record(1, Epoch(epoch)),))
    known = log.epoch_history
    file = EpochHistory(known.entries[:kept])
    assert epochs_at_start(BROKER_NEXT, file, log) == known
    assert epochs_at_start(RELEASES["3.7"], file, log) == file
