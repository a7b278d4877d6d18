"""The rules of the ZooKeeper controller in which releases differ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, LeaderAndIsr


class LiveBroker(NamedTuple):
    """A broker's ephemeral node; its broker epoch is the ZooKeeper transaction that made it. Kafka: `BrokerIdZNode`."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class ZkControllerProtocol:
    """The rules in which the controllers of the ZooKeeper era differ."""

    name: str
    remove_from_isr: Callable[[LeaderAndIsr, BrokerId, bool], LeaderAndIsr]
    """The removal of an offline replica from the partition (the flag: unclean elections are allowed)."""

    checked_epoch: Callable[[Epoch], Epoch]
    """Under which controller epoch a write is accepted."""

    epoch_of: Callable[[LiveBroker], BrokerEpoch]
    """The broker epoch that a request to a broker carries."""

    has_bounced: Callable[[LiveBroker, LiveBroker], bool]
    """Whether a broker has been restarted since the controller saw it last."""


@dataclass(frozen=True, slots=True)
class ZkControllerSettings:
    """The configuration of a cluster. `unclean_election`: `unclean.leader.election.enable`."""

    unclean_election: bool = False


@dataclass(frozen=True, slots=True)
class ZkController:
    """A controller of the ZooKeeper era as its handlers know it: the rules of its release, and its settings."""

    protocol: ZkControllerProtocol
    settings: ZkControllerSettings = ZkControllerSettings()
