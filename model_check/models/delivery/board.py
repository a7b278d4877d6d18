"""The slots of the model."""

from typing import Any, NamedTuple

from kspec.model_check.core.model import Client, Model, Slot, TransactionalClient
from kspec.model_check.models.delivery.settings import ACKS, NOBODY, check
from kspec.model_check.models.delivery.values import (
    DeliveredLog,
    LateCommit,
    ReadingProcess,
    SendingProducer,
    SentRecord,
)
from kspec.model_check.models.processes import FIRST_GROUP
from kspec.model_check.traces.encode import in_words
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.names import coordinator_of
from kspec.spec.transactions.clients import ProducerNumbers
from kspec.spec.values import NO_PRODUCER_ID, Instant, MonotonicMs, ProducerId, TimestampMs

NOW = Instant(MonotonicMs(0), TimestampMs(0))
"""The time of every action."""

BUDGETS = ("disconnects", "late_requests", "restarts", "leader_changes", "rebalances", "crashes", "late_commits")


class Slots(NamedTuple):
    """`sent` and `late` are requests of the producer: on its connection, and on one that it has given up.

    `done` counts for each record how often it was processed; `late_commit` is of any process; `left`: budgets.
    """

    producer: Slot
    sent: Slot
    late: Slot | None
    log: Slot
    process: dict[int, Slot]
    group: Slot | None
    done: Slot | None
    late_commit: Slot | None
    left: dict[str, Slot]


class Board:
    """The model under construction."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        check(parameters)
        self.model = Model(name, parameters)
        self.parameters = parameters
        self.acks = ACKS[parameters["acks"]]
        self.retries: bool = parameters["retries"]
        self.idempotent: bool = parameters["idempotent"]
        self.records: int = parameters["records"]
        self.producer = TransactionalClient(1)
        self.leader = 2
        self.protocol: BrokerProtocol
        (self.protocol,) = (release for release in BROKER_RELEASES if release.name == parameters["release"])
        self.coordinator = Coordinator(coordinator_of(parameters["release"]))
        self.has_group = parameters["commits"] != NOBODY
        number = parameters["rebalances"] + 1 if self.has_group else 0
        self.processes = [Client(one) for one in range(1, number + 1)]
        self.slots = self._slots()

    def _slots(self) -> Slots:
        model, parameters, has_group = self.model, self.parameters, self.has_group
        first = ProducerId(1) if self.idempotent else NO_PRODUCER_ID

        def optional(name: str, holds: Any, party: Any) -> Slot:
            return model.slot(name, None, None, party, holds=holds | None, party=party, words=_in_words_if_any)

        return Slots(
            producer=model.slot("producer", SendingProducer(numbers=ProducerNumbers(first)), None, self.producer),
            sent=optional("sent", SentRecord, self.producer),
            late=optional("late", SentRecord, self.producer) if parameters["late_requests"] else None,
            log=model.slot("partition", DeliveredLog(), None, self.leader),
            process={
                one: model.slot("process", ReadingProcess(FIRST_GROUP.generation if one == 1 else 0), one, one)
                for one in self.processes
            },
            group=model.slot("group", FIRST_GROUP, None, self.leader) if has_group else None,
            done=model.slot("done", (0,) * self.records, bookkeeping=True) if has_group else None,
            late_commit=optional("lateCommit", LateCommit, self.leader)
            if has_group and parameters["late_commits"]
            else None,
            left={
                name: model.slot(f"{name}_left", parameters[name], bookkeeping=True) for name in BUDGETS if parameters[name]
            },
        )


def _in_words_if_any(value: object) -> str:
    return "none" if value is None else in_words(value)
