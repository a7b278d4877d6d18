"""A producer of transactions field by field, for tests: it asks one broker, and says which id and epoch it has."""

from typing import Any

from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, wait_until

TRANSACTION_KEY = 1
TIMEOUT_MS = 60_000


class TransactionClient:
    """The producer of one transactional id on a connection to its coordinator."""

    def __init__(self, client: BrokerClient, name: str, end_version: int = 5) -> None:
        self.client = client
        self.name = name
        self.end_version = end_version
        self.producer_id, self.epoch = -1, -1

    def find(self) -> int:
        """The broker that coordinates the id; its topic is created if nobody does."""
        found: list[Message] = []

        def is_found() -> bool:
            answer = self.client.call("FindCoordinator", 4, key_type=TRANSACTION_KEY, coordinator_keys=[self.name])
            found[:] = answer.coordinators
            return bool(found[0].error_code == 0)

        wait_until(is_found)
        node: int = found[0].node_id
        return node

    def init(self, version: int = 4, **fields: Any) -> Error:
        """Ask for an id, and keep it if it is given."""
        given = {
            "transactional_id": self.name,
            "transaction_timeout_ms": TIMEOUT_MS,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        answer = self.client.call("InitProducerId", version, **{**given, **fields})
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return Error(answer.error_code)

    def init_when_possible(self, **fields: Any) -> None:
        """Ask until the id is given: a coordinator that begins, or ends a transaction, asks for patience."""
        patience = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR, Error.CONCURRENT_TRANSACTIONS)
        error = [Error.NONE]

        def is_given() -> bool:
            error[0] = self.init(**fields)
            return error[0] not in patience

        wait_until(is_given)
        assert error[0] == Error.NONE

    def add(self, *partitions: tuple[str, int], version: int = 3, **fields: Any) -> list[Error]:
        """Add partitions, as a client does; their errors in the order of the answer."""
        topics = [Message(name=topic, partitions=[index]) for topic, index in partitions]
        given = {
            "v3_and_below_transactional_id": self.name,
            "v3_and_below_producer_id": self.producer_id,
            "v3_and_below_producer_epoch": self.epoch,
            "v3_and_below_topics": topics,
        }
        answer = self.client.call("AddPartitionsToTxn", version, **{**given, **fields})
        return _errors(answer.results_by_topic_v3_and_below)

    def ask(self, *partitions: tuple[str, int], verify_only: bool = True, **fields: Any) -> list[Error]:
        """Ask, as a leader does, whether partitions are in the transaction, or add them; their errors."""
        topics = [Message(name=topic, partitions=[index]) for topic, index in partitions]
        given = {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "verify_only": verify_only,
            "topics": topics,
        }
        answer = self.client.call("AddPartitionsToTxn", 5, transactions=[Message(**{**given, **fields})])
        return _errors(answer.results_by_transaction[0].topic_results)

    def add_offsets(self, group: str, version: int = 4) -> Error:
        """Add the offsets of a group."""
        answer = self.client.call(
            "AddOffsetsToTxn",
            version,
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return Error(answer.error_code)

    def end(self, committed: bool, version: int | None = None, **fields: Any) -> Error:
        """Commit or abort, and keep the epoch that is given."""
        version = self.end_version if version is None else version
        given = {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "committed": committed,
        }
        answer = self.client.call("EndTxn", version, **{**given, **fields})
        if answer.error_code == 0 and version >= 5:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return Error(answer.error_code)

    def described(self) -> Message:
        """The state of the id."""
        answer = self.client.call("DescribeTransactions", 0, transactional_ids=[self.name])
        found: Message = answer.transaction_states[0]
        return found

    def state(self) -> str:
        """The name of the state, or of the error."""
        found = self.described()
        return str(found.transaction_state) if found.error_code == 0 else Error(found.error_code).name


def _errors(topics: list[Message]) -> list[Error]:
    return [Error(one.partition_error_code) for topic in topics for one in topic.results_by_partition]
