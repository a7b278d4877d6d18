"""What a run is made of: the seed, the rules of each node, and what clients ask for; the rest follows from the seed."""

from collections.abc import Mapping
from dataclasses import dataclass

from impl.sim.plan import Weather, weather_of
from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import Controller
from spec.messages.produce import ACKS_ALL

CONTROLLER_ID = 100
ADMIN_ID, FIRST_CLIENT_ID = 1_000, 1_001
TOPIC = "sim"

CODED_ONE_IN = 10

HEARTBEATS = 6
"""How many heartbeats a broker sends within its session timeout. Kafka: 9,000 and 2,000 ms by default."""

SETTINGS: Mapping[str, str] = {
    "replica.fetch.wait.max.ms": "300",
    "replica.fetch.backoff.ms": "200",
    "auto.create.topics.enable": "false",
    "log.segment.bytes": "4096",
    "log.index.interval.bytes": "256",
    "log.retention.ms": "-1",
}
"""Shorter times than Kafka's, so that more happens in a run."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run is made of. `protocols`: the rules of each broker by its id."""

    seed: int
    protocols: Mapping[int, BrokerProtocol]
    controller: Controller
    replication_factor: int = 3
    acks: int = ACKS_ALL
    unclean_elections: bool = False
    """Whether the topic allows elections of replicas that may lack records: nothing is promised about these, then."""
    weather: Weather | None = None
    """What the cluster and its world are like; by default what follows from the seed."""
    coded: bool | None = None
    """Whether all messages are encoded and decoded as on a real wire; by default in one seed of `CODED_ONE_IN`."""

    @property
    def surroundings(self) -> Weather:
        """The weather of this run."""
        return self.weather if self.weather is not None else weather_of(self.seed)

    @property
    def is_coded(self) -> bool:
        """Whether messages are bytes on their way. The run is the same if they are not."""
        return self.coded if self.coded is not None else self.seed % CODED_ONE_IN == 0

    def settings(self) -> dict[str, str]:
        """The settings of all nodes."""
        weather = self.surroundings
        own = {
            "replica.lag.time.max.ms": str(weather.max_lag),
            "min.insync.replicas": str(weather.min_isr),
            "broker.session.timeout.ms": str(weather.session),
            "broker.heartbeat.interval.ms": str(weather.session // HEARTBEATS),
            "metadata.log.max.record.bytes.between.snapshots": str(weather.snapshot_bytes),
        }
        return {**SETTINGS, **own}
