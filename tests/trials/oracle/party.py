"""A broker, or one of its replicas, as an oracle sees it before a step."""

from dataclasses import dataclass
from typing import Any

from kspec.spec.broker.partition import Broker, BrokerSettings, Partition
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.values import BrokerEpoch, BrokerId

NOBODY = BrokerId(-1)


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A broker in the moment of a step: what it knows of others, its replica or its lifecycle, and the time (ms)."""

    state: Any
    """Its replica of the partition, or its lifecycle."""
    broker: Broker | None
    """None where the step is not one of a known broker."""
    now: int = 0

    @property
    def id(self) -> BrokerId:
        """Its number."""
        return NOBODY if self.broker is None else self.broker.self_id

    @property
    def epoch(self) -> BrokerEpoch:
        """Its broker epoch."""
        assert self.broker is not None
        return self.broker.broker_epoch

    @property
    def brokers(self) -> tuple[BrokerRegistration, ...]:
        """All brokers, in its metadata."""
        assert self.broker is not None
        return self.broker.brokers

    @property
    def settings(self) -> BrokerSettings:
        """The settings of the partition."""
        assert self.broker is not None
        return self.broker.settings

    @property
    def shutting_down(self) -> bool:
        """Whether it waits for leave to stop, or stops."""
        assert self.broker is not None
        return self.broker.shutting_down

    @property
    def partition(self) -> Partition[EpochLog]:
        """Its replica."""
        assert isinstance(self.state, Partition)
        return self.state

    @property
    def life(self) -> BrokerLifecycle:
        """Its process between start and stop."""
        assert isinstance(self.state, BrokerLifecycle)
        return self.state
