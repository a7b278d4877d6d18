"""UnregisterBroker (KIP-631): remove the registration of a broker that will not come back."""

from dataclasses import dataclass

from kspec.spec.values import BrokerId


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRequest:
    """Remove a broker's registration. Kafka: `UnregisterBrokerRequest`."""

    broker: BrokerId
