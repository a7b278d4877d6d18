"""The models by name."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from kspec.model_check.core.model import Model
from kspec.model_check.core.parameters import Parameter, resolve
from kspec.model_check.models import controller, delivery, group, kafka, messages, published, quorum, shutdown, transactions
from kspec.model_check.models import words as words  # makes traces know the words of values
from kspec.model_check.models.delivery.settings import PARAMETERS as DELIVERY_PARAMETERS
from kspec.model_check.models.group.settings import PARAMETERS as GROUP_PARAMETERS
from kspec.model_check.models.kafka.settings import PARAMETERS as KAFKA_PARAMETERS
from kspec.model_check.models.kafka.settings import defaults_with
from kspec.model_check.models.messages.settings import PARAMETERS as MESSAGES_PARAMETERS
from kspec.model_check.models.published import async_isr
from kspec.model_check.models.published.settings import PARAMETERS, QUIRKS, TRUNCATION
from kspec.model_check.models.quorum.settings import PARAMETERS as QUORUM_PARAMETERS
from kspec.model_check.models.quorum.settings import defaults_with as quorum_defaults_with
from kspec.model_check.models.transactions.settings import PARAMETERS as TRANSACTIONS_PARAMETERS
from kspec.spec.published.versions import ASYNC_ISR, KIP_101, KIP_279, KIP_320, KIP_320_FIRST_TRY, TRUNCATE_TO_HW, Protocol


def _no_other_defaults(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {}


class ModelEntry(NamedTuple):
    """A model that can be built: its name, a summary, its parameters, the quirks that `--repair` repairs.

    `defaults`: defaults that depend on the given parameters.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    quirks: Mapping[str, str]
    builder: Callable[[dict[str, Any]], Model]
    defaults: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _no_other_defaults

    def build(self, given: Mapping[str, Any]) -> Model:
        """The model with these parameters, and defaults for the rest. `ParameterError` for invalid ones."""
        parameters = resolve(self.name, self.parameters, {**self.defaults(given), **given})
        for parameter in self.parameters:
            parameter.check_size(parameters[parameter.name])
        return self.builder(parameters)


def _replication(protocol: Protocol, summary: str, truncation: str | None = None) -> ModelEntry:
    parameters: tuple[Parameter, ...] = PARAMETERS
    if truncation:
        parameters += (TRUNCATION._replace(default=truncation),)
    builder = partial(published.build, protocol.name, protocol)
    return ModelEntry(protocol.name, summary, parameters, QUIRKS, builder)


MODELS = {
    entry.name: entry
    for entry in (
        _replication(TRUNCATE_TO_HW, "Kafka up to 0.10: a new follower truncates to its high watermark"),
        _replication(KIP_101, "Kafka 0.11 (KIP-101): a new follower asks where its last epoch ends"),
        _replication(
            KIP_279, "Kafka 2.0 (KIP-279): a new follower finds the last epoch that both logs share", truncation="agreement"
        ),
        _replication(
            KIP_320_FIRST_TRY,
            "the refuted first draft of KIP-320: fetches fenced by the epoch of the follower's last record",
            truncation="agreement",
        ),
        _replication(
            KIP_320, "Kafka 2.1 (KIP-320): everything is fenced by the current leader epoch", truncation="exchange"
        ),
        ModelEntry(
            "async-isr",
            "Kafka 2.7 (KIP-497): ISR changes are requests to the controller",
            async_isr.PARAMETERS,
            async_isr.QUIRKS,
            partial(async_isr.build, ASYNC_ISR.name, ASYNC_ISR),
        ),
        ModelEntry(
            "kafka",
            "Kafka 0.10 to 4.4, and repaired: brokers and controller over the handlers that a broker runs",
            KAFKA_PARAMETERS,
            {},
            partial(kafka.build, "kafka"),
            defaults_with,
        ),
        ModelEntry(
            "messages",
            "Kafka 4.4, repaired, with each message in flight by itself: the theorems kafka-next are about it",
            MESSAGES_PARAMETERS,
            {},
            partial(messages.build, "messages"),
        ),
        ModelEntry(
            "controller",
            "the KRaft controller alone, 3.0 to 4.4 and repaired, with more brokers than replicas",
            controller.PARAMETERS,
            {},
            partial(controller.build, "controller"),
            controller.defaults_with,
        ),
        ModelEntry(
            "shutdown",
            "controlled shutdown at the KRaft controller, 3.0 to 4.4 and repaired: whether it ever ends",
            shutdown.PARAMETERS,
            {},
            partial(shutdown.build, "shutdown"),
        ),
        ModelEntry(
            "group",
            "consumers of a group and its coordinator, classic and KIP-848: who reads what, and which commits are kept",
            GROUP_PARAMETERS,
            {},
            partial(group.build, "group"),
        ),
        ModelEntry(
            "transactions",
            "producers of transactions, their coordinator and leaders, versions 0 to 2: who reads what, and what is torn",
            TRANSACTIONS_PARAMETERS,
            {},
            partial(transactions.build, "transactions"),
        ),
        ModelEntry(
            "delivery",
            "a producer, a partition, and processes that read it: which settings deliver at most once, at least once",
            DELIVERY_PARAMETERS,
            {},
            partial(delivery.build, "delivery"),
        ),
        ModelEntry(
            "quorum",
            "the quorum of controllers (KRaft), 2.8 to 4.4 and repaired: who leads, and what is committed",
            QUORUM_PARAMETERS,
            {},
            partial(quorum.build, "quorum"),
            quorum_defaults_with,
        ),
    )
}
