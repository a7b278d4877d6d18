"""A state of model `kafka`, read by the names of its slots."""

from typing import Any

from kspec.model_check.core.model import Model, State
from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.kafka.values import (
    AlterPartitionExchange,
    ClientKnowledge,
    Image,
    LateFetch,
    Memory,
    ModelController,
    Process,
)
from kspec.model_check.models.parts import Role
from kspec.spec.broker.rules.fetcher import FetchState
from kspec.spec.log.local_log import LocalLog


class ModelState:
    """One state of the model, by the names of its slots."""

    def __init__(self, model: Model, state: State) -> None:
        self.model = model
        self._positions = {(slot.name, slot.key): slot.position for slot in model.slots}
        self.state = state

    def _get(self, name: str, key: int | None = None) -> Any:
        return self.state[self._positions[name, key]]

    @property
    def cluster(self) -> ModelController:
        """The controller's state."""
        found: ModelController = self._get("controller")
        return found

    @property
    def clients(self) -> ClientKnowledge:
        """The clients' knowledge."""
        found: ClientKnowledge = self._get("clients")
        return found

    @property
    def produced(self) -> int:
        """The number of records that have been produced: the number of the last one."""
        found: int = self._get("produced")
        return found

    def reading(self, one: int) -> tuple[Image, ...]:
        """The metadata images that a broker has read last, and has still to read."""
        found: tuple[Image, ...] = self._get("metadata", one)
        return found

    def log(self, one: int) -> LocalLog[ModelLog]:
        """A replica's log and high watermark."""
        found: LocalLog[ModelLog] = self._get("log", one)
        return found

    def role(self, one: int) -> Role:
        """The leader that a replica knows."""
        found: Role = self._get("role", one)
        return found

    def memory(self, one: int) -> Memory:
        """A leader's memory of its followers."""
        found: Memory = self._get("memory", one)
        return found

    def fetcher(self, one: int) -> FetchState:
        """A follower's fetcher."""
        found: FetchState = self._get("fetcher", one)
        return found

    def process(self, one: int) -> Process:
        """A broker's process."""
        found: Process = self._get("process", one)
        return found

    def exchange(self, one: int) -> AlterPartitionExchange:
        """A leader's AlterPartition request, or the response."""
        found: AlterPartitionExchange = self._get("alterPartition", one)
        return found

    def late(self, one: int) -> LateFetch:
        """A follower's late fetch, where the bounds allow one."""
        found: LateFetch = self._get("lateFetch", one)
        return found

    def has_replica(self, one: int) -> bool:
        """Whether a broker that is up has taken metadata by which it has a replica of the partition."""
        reading = self.reading(one)
        return self.process(one).up and bool(reading) and one in reading[0].topic.replicas
