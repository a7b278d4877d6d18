"""BrokerRegistration: a starting broker registers with the controller."""

from typing import NamedTuple

from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Error, Incarnation


class BrokerRegistrationRequest(NamedTuple):
    """A starting broker registers. Kafka: `BrokerRegistrationRequest`.

    `previous_broker_epoch` is the epoch of the incarnation that shut down cleanly before this one, `NO_BROKER_EPOCH` if the
    last one did not (KIP-966, since 3.7). `rack` is where it stands, `None` if it does not say.
    """

    broker: BrokerId
    incarnation: Incarnation
    previous_broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    rack: str | None = None


class BrokerRegistrationResponse(NamedTuple):
    """The answer: an error, or the broker epoch of this incarnation. Kafka: `BrokerRegistrationResponse`.

    `incarnation` repeats the request's. In Kafka the connection does this: an answer reaches only the process that asked.
    """

    error: Error
    incarnation: Incarnation
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
