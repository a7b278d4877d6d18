"""The slots of a published replication model, and what its actions share."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from kspec.model_check.core.model import PRODUCER, Model, Slot, View, when
from kspec.model_check.models.carriers import empty_log
from kspec.model_check.models.published.exchange import committed, following, leading
from kspec.model_check.models.published.settings import NAMES, ActionNames
from kspec.spec.broker.rules.isr.announcement import is_later_leader_epoch
from kspec.spec.broker.rules.leadership import is_leader
from kspec.spec.broker.rules.produce import min_isr_within_replicas
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER
from kspec.spec.published.replica import NO_ROLE
from kspec.spec.published.versions import Protocol
from kspec.spec.values import NO_EPOCH, NO_LEADER, BrokerId, Epoch, LeaderAndIsr, Offset, Record, next_epoch


class AcknowledgedRecord(NamedTuple):
    """An acknowledged record, and its offset. Only the model keeps it; no rule reads it."""

    offset: Offset
    record: Record


class Slots(NamedTuple):
    """The slots of the model; `announcement` holds the controller's decision of each epoch, once taken."""

    log: dict[int, Slot]
    high_watermark: dict[int, Slot]
    role: dict[int, Slot]
    partition: Slot
    next_record: Slot
    announcement: dict[int, Slot]
    restarts_left: Slot | None
    power_losses_left: Slot | None
    acknowledged: Slot | None


class Views(NamedTuple):
    """The views of replicas: the state that decisions read, and the part that other replicas see."""

    leading: dict[int, View]
    following: dict[tuple[int, int], View]
    committed: dict[int, View]


NOT_ANNOUNCED = LeaderAndIsr(NO_LEADER, NO_EPOCH, frozenset())
"""The place of an announcement whose epoch has not begun."""


class Board:
    """A model under construction: its rules, bounds and slots, and the guards that several actions share."""

    def __init__(
        self,
        name: str,
        rules: Protocol,
        parameters: dict[str, Any],
        epochs: Sequence[Epoch] | None = None,
        replicas: Sequence[BrokerId] | None = None,
    ) -> None:
        self.model = Model(name, parameters)
        self.rules = rules
        self.names = NAMES.get(name, ActionNames())
        self.model.known_as = {own: common for common, own in self.names._asdict().items()}
        self.parameters = parameters
        self.repairs = parameters["repair"]
        self.replicas = replicas or [BrokerId(replica) for replica in range(1, parameters["replicas"] + 1)]
        self.epochs = epochs or [Epoch(epoch) for epoch in range(parameters["max_epoch"] + 1)]
        self.acks = {None: None, "1": ACKS_LEADER, "all": ACKS_ALL}[parameters["acks"]]
        self.model.interchangeable = tuple(self.replicas)
        self.slots = slots = self._slots()
        self.views = self._views()
        self.is_leader = {replica: when(partial(is_leader, replica), slots.role[replica]) for replica in self.replicas}
        self.is_announced = {
            (leader, epoch): when(partial(is_leader, leader), slots.announcement[epoch])
            for leader in self.replicas
            for epoch in self.epochs
        }
        self.has_not_seen = {
            (replica, epoch): when(
                lambda role, epoch=epoch: is_later_leader_epoch(role.leader_epoch, epoch), slots.role[replica]
            )
            for replica in self.replicas
            for epoch in self.epochs
        }
        """Whether an announcement of this epoch is later than the last one that the replica accepted."""
        self.is_next_epoch = {
            epoch: when(lambda partition, epoch=epoch: next_epoch(partition.leader_epoch) == epoch, slots.partition)
            for epoch in self.epochs
        }

    def _slots(self) -> Slots:
        model, replicas = self.model, self.replicas
        return Slots(
            log=model.broker_slots("log", replicas, empty_log(self.parameters)),
            high_watermark=model.broker_slots("highWatermark", replicas, Offset(0)),
            role=model.broker_slots("role", replicas, NO_ROLE),
            partition=model.slot("partition", LeaderAndIsr(NO_LEADER, NO_EPOCH, frozenset(replicas))),
            next_record=model.slot("nextRecord", 0, bookkeeping=True),
            announcement=model.numbered_slots("announcement", self.epochs, NOT_ANNOUNCED),
            restarts_left=self._budget("restarts"),
            power_losses_left=self._budget("power_losses"),
            acknowledged=self._promises(),
        )

    def _views(self) -> Views:
        view, slots = self.model.view, self.slots
        role, log, high_watermark = slots.role, slots.log, slots.high_watermark
        return Views(
            leading={
                replica: view(
                    "leading", partial(leading, replica), role[replica], log[replica], high_watermark[replica], key=replica
                )
                for replica in self.replicas
            },
            following={
                (leader, follower): view(
                    f"following {leader}", partial(following, leader), role[follower], log[follower], key=follower
                )
                for leader, follower in self.pairs()
            },
            committed={
                replica: view("committed", committed, log[replica], high_watermark[replica], key=replica)
                for replica in self.replicas
            },
        )

    def _promises(self) -> Slot | None:
        """The acknowledged records; no slot where these are not tracked."""
        if self.acks is None:
            return None
        held = frozenset[AcknowledgedRecord]
        return self.model.slot("acknowledged", held(), holds=held, party=PRODUCER)

    def _budget(self, parameter: str) -> Slot | None:
        """The number of disturbances of a kind that are left; no slot where there are none."""
        most = self.parameters[parameter]
        return self.model.slot(f"{parameter}_left", most, bookkeeping=True) if most else None

    @property
    def min_isr(self) -> int:
        """The number of in-sync replicas that acks=all requires."""
        return min_isr_within_replicas(self.parameters["min_isr"], len(self.replicas))

    def pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        """Every replica with every other one."""
        return [(leader, other) for leader in self.replicas for other in self.replicas if leader != other]
