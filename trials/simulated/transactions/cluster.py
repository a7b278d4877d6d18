"""A simulated cluster with producers of transactions, and readers of what is committed, beside all other clients."""

from collections.abc import Iterable

from kspec.impl.wire.values import Message
from kspec.spec.controller.topics.names import TRANSACTION_STATE
from kspec.spec.topics import TopicPartition
from kspec.trials.simulated.clients.operator import Operator
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.ids import OFFSETS_PARTITIONS
from kspec.trials.simulated.kinds.site import Fault
from kspec.trials.simulated.setup import RunSetup
from kspec.trials.simulated.transactions.clients import CommittedReader, SimulatedTransactionProducer
from kspec.trials.simulated.transactions.history import TransactionHistory

TOPIC, PARTITIONS = "transactional", 2
KEEPS_ALL = (("retention.bytes", "-1"),)
NAMES = ("shared", "shared", "own")
"""The transactional ids of the producers: two have the same, and fence each other again and again."""


class TransactionalCluster(SimulatedCluster):
    """The cluster of one seed, with transactions."""

    other_partitions = (
        *(TopicPartition(TOPIC, index) for index in range(PARTITIONS)),
        *(TopicPartition(TRANSACTION_STATE, index) for index in range(OFFSETS_PARTITIONS)),
    )

    more_purposes = ("transactions", "markers")

    def __init__(self, setup: RunSetup, planned: Iterable[Fault] = ()) -> None:
        super().__init__(setup, planned)
        self.transactions = TransactionHistory()
        environment = self.environment._replace(topic=TOPIC)
        self._admin = Operator(environment, self.active_controller)
        self.producers: list[SimulatedTransactionProducer] = []
        self.readers: list[CommittedReader] = []
        self._of_transactions = environment

    def create_topic(self) -> None:
        """Create the topic of the other clients, and that of transactions."""
        super().create_topic()
        brokers = list(self.brokers)
        factor = self.setup.replication_factor
        assignments = [[brokers[(index + place) % len(brokers)] for place in range(factor)] for index in range(PARTITIONS)]
        done: list[Message | None] = []
        self._admin.create_topic(assignments, unclean_elections=False, take=done.append, more=KEEPS_ALL)
        self.until(lambda: bool(done), "create a topic")
        assert done[0] is not None, "the controller answers"
        assert done[0].topics[0].error_code == 0

    def start_clients(self) -> None:
        """Start the other clients, and those of transactions."""
        super().start_clients()
        environment, history = self._of_transactions, self.transactions
        for name in NAMES:
            self.producers.append(SimulatedTransactionProducer(self._next_id(), environment, PARTITIONS, name, history))
        for index in range(PARTITIONS):
            self.readers.append(CommittedReader(self._next_id(), environment, PARTITIONS, index, history))
        for client in (*self.producers, *self.readers):
            client.start()

    def client_ids(self) -> list[int]:
        """The ids of all clients, of transactions, too: faults choose among them."""
        return [*super().client_ids(), *(one.node_id for one in (*self.producers, *self.readers))]

    def _next_id(self) -> int:
        """An id behind those of all other clients: these are counted, and more may come."""
        return self.new_id() + 10_000 + len(self.producers) + len(self.readers)

    def heal(self) -> None:
        """As without transactions; then all of these end, and what is committed is judged. Raises: `BrokenPromiseError`."""
        super().heal()
        before = sum(one.ended for one in self.producers)
        self.until(lambda: sum(one.ended for one in self.producers) > before, "end a transaction again")
        for producer in self.producers:
            producer.stopped = True
        self.until(lambda: all(one.is_idle for one in self.producers), "end its transactions")
        for reader in self.readers:
            reader.read_all()
        self.until(lambda: all(one.end is not None for one in self.readers), "decide on all transactions")
        self.transactions.check({reader.partition: reader.found for reader in self.readers})
