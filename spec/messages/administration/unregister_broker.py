"""UnregisterBroker (KIP-631): strike a broker off that will not come back."""

from dataclasses import dataclass

from spec.values import BrokerId


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRequest:
    """Forget a broker's registration. Kafka: `UnregisterBrokerRequest`."""

    broker: BrokerId
