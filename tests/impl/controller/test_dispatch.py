"""Every API that a controller offers has somebody who answers it."""

from kspec.impl.controller.dispatch import HANDLERS
from kspec.impl.wire.apis import FORWARDED, OFFERED_BY_CONTROLLER


def test_what_is_offered_is_answered() -> None:
    assert {*HANDLERS, "Envelope"} == set(OFFERED_BY_CONTROLLER)
    assert len(OFFERED_BY_CONTROLLER) == len(set(OFFERED_BY_CONTROLLER))


def test_what_is_handed_on_is_answered_and_no_broker_s_own_business() -> None:
    own = {"Fetch", "FetchSnapshot", "BrokerRegistration", "BrokerHeartbeat", "AlterPartition", "Envelope"}
    assert set(FORWARDED) <= set(HANDLERS) - own
