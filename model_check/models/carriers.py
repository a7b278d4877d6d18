"""The carriers of the log algebra that a model may have: what its logs are made of."""

from collections.abc import Mapping
from typing import Any, Protocol

from kspec.model_check.core.parameters import Parameter
from kspec.spec.log.algebra import Log
from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.log.stored_log import EMPTY_STORED_LOG
from kspec.spec.values import NO_EPOCH, Offset, Record


class ModelLog(Log, Protocol):
    """A log in a model: properties also see its records."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The records from the start of the log on."""

    @property
    def epoch_history(self) -> EpochHistory:
        """The epochs of the log: which starts where."""

    def read(self, start: Offset, limit: int) -> tuple[Record, ...]:
        """As `Log.read`, record by record."""


CARRIERS: Mapping[str, ModelLog] = {"records": EMPTY_LOG, "epochs": EMPTY_STORED_LOG}
"""The empty log of each carrier, by the value of the parameter `log`."""

LOG = Parameter(
    "log",
    "records",
    "a log is its records, or, as in a broker, an epoch history in memory over records in files",
    choices=tuple(CARRIERS),
)


def empty_log(parameters: Mapping[str, Any]) -> ModelLog:
    """The empty log of the carrier that a model is to have."""
    return CARRIERS[parameters[LOG.name]]


def follows_from_its_records(log: ModelLog) -> bool:
    """Whether a log ends after its last record, and its epoch history is that of its records, if their epochs never go back.

    Then an epoch starts at its first record. One that has no record, because it was only opened or its records were deleted,
    starts at the log's end. Epochs that go back have erased entries.
    """
    records, start = log.records, log.start_offset
    epochs = [record.leader_epoch for record in records]
    if epochs != sorted(epochs):
        return True
    end, known = start + len(records), log.epoch_history.pairs
    first_of_each = {epoch: Offset(start + position) for position, epoch in reversed(list(enumerate(epochs)))}
    written = tuple(sorted((epoch, first) for epoch, first in first_of_each.items() if epoch != NO_EPOCH))
    opened = known[-1:] if known[-1:] and known[-1][1] == end and known[-1][0] > max(epochs, default=NO_EPOCH) else ()
    return known == written + opened and log.end_offset == end
