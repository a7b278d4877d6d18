"""The times when a broker that has just started acts on metadata, and when it answers others."""

import pytest

from kspec.spec.broker.rules.lifecycle import (
    BrokerLifecycle,
    BrokerState,
    acts_on_any_metadata,
    acts_once_caught_up,
    acts_once_registered,
    has_lost_registration,
    opens_ports_at_once,
    opens_ports_once_unfenced,
)
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.values import BrokerEpoch, BrokerId, Incarnation, Offset

END_AT_START = Offset(9)


def broker_in(state: BrokerState) -> BrokerLifecycle:
    return BrokerLifecycle(BrokerId(1), Incarnation(2), state)


@pytest.mark.parametrize(
    ("state", "read", "expected"),
    [
        (BrokerState.STARTING, 8, (False, False, True)),
        (BrokerState.STARTING, 9, (True, False, True)),
        (BrokerState.RECOVERY, 8, (False, False, True)),
        (BrokerState.RECOVERY, 9, (True, True, True)),
        (BrokerState.RUNNING, 10, (True, True, True)),
    ],
)
def test_when_a_starting_broker_acts(state: BrokerState, read: int, expected: tuple[bool, ...]) -> None:
    rules = acts_once_caught_up, acts_once_registered, acts_on_any_metadata
    assert tuple(rule(broker_in(state), Offset(read), END_AT_START) for rule in rules) == expected


@pytest.mark.parametrize(("state", "expected"), [(state, index >= 2) for index, state in enumerate(BrokerState)])
def test_when_a_starting_broker_answers(state: BrokerState, expected: bool) -> None:
    assert opens_ports_once_unfenced(broker_in(state)) == expected
    assert opens_ports_at_once(broker_in(state))


def test_from_which_release_on() -> None:
    """3.5 installs the publishers before it waits for the registration, and opens the ports after it is unfenced."""
    by_name = {release.name: (release.acts_on_metadata, release.opens_ports) for release in BROKER_RELEASES}
    assert by_name["3.4"] == (acts_once_registered, opens_ports_at_once)
    assert by_name["3.5"] == by_name["4.4"] == (acts_once_caught_up, opens_ports_once_unfenced)
    assert by_name["next"] == (acts_once_registered, opens_ports_once_unfenced)


@pytest.mark.parametrize("state", BrokerState)
def test_a_registration_is_lost_once_the_metadata_past_it_have_none(state: BrokerState) -> None:
    lifecycle = broker_in(state)._replace(broker_epoch=BrokerEpoch(5))
    goes_on = state not in (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN)
    assert has_lost_registration(lifecycle, False, Offset(6)) is goes_on
    assert not has_lost_registration(lifecycle, True, Offset(6))
    assert not has_lost_registration(lifecycle, False, Offset(5)), "its registration is to come"
    assert not has_lost_registration(broker_in(state), False, Offset(6)), "it has not been registered"
