"""The controllers' history: neighbouring versions differ in exactly what the releases between them changed."""

from itertools import pairwise

import pytest

from spec.controller.protocol import ControllerProtocol
from spec.metadata import BrokerRegistration, MetadataImage
from spec.mutation import changed_rules, weaken
from spec.releases.kraft import KRAFT_RELEASES
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from spec.releases.zookeeper import ZK_RELEASES
from spec.values import BrokerEpoch, BrokerId, Incarnation, Offset

CHANGES = {
    ("3.0", "3.2"): {"elect", "marks_recovering"},
    ("3.2", "3.3"): {
        "may_lead", "check_controller_ahead", "eligible_for_isr", "moved_away", "caught_up", "marks_shutdown"
    },
    ("3.3", "3.5"): {"eligible_for_isr"},
    ("3.5", "3.6"): {"opens_epoch"},
    ("3.6", "3.7"): {"register_again"},
    ("3.7", "3.8"): {"complete_reassignment"},
    ("3.8", "3.9"): {"register_again"},
    ("3.9", "4.0"): {"elr_enabled", "last_known_leader", "departure"},
    ("4.0", "next"): {"eligible_leaders", "last_known_leader", "departure"},
    ("0.10", "1.1"): {"remove_from_isr"},
    ("1.1", "2.1"): {"checked_epoch"},
    ("2.1", "2.2"): {"epoch_of", "has_bounced"},
}  # fmt: skip


@pytest.mark.parametrize("neighbours", CHANGES, ids="-".join)
def test_neighbours(neighbours: tuple[str, str]) -> None:
    by_name = {rules.name: rules for rules in (*KRAFT_RELEASES, *ZK_RELEASES)}
    before, after = (by_name[name] for name in neighbours)
    assert set(changed_rules(before, after)) == CHANGES[neighbours]


def test_every_pair_of_neighbours_is_looked_at() -> None:
    pairs = [*pairwise(rules.name for rules in KRAFT_RELEASES), *pairwise(rules.name for rules in ZK_RELEASES)]
    assert set(pairs) == set(CHANGES)


WEAKENED = [weaken(release, mutant) for release in KRAFT_RELEASES for mutant in CONTROLLER_MUTANTS]


@pytest.mark.parametrize("protocol", [*KRAFT_RELEASES, *WEAKENED], ids=lambda protocol: str(protocol.name))
def test_the_record_says_whether_a_broker_must_have_replayed_everything(protocol: ControllerProtocol) -> None:
    registration = BrokerRegistration(BrokerId(1), BrokerEpoch(1), Incarnation(1), fenced=True, registered_at=Offset(0))
    image = MetadataImage(Offset(9), (registration,), ())
    assert protocol.caught_up(image, registration, Offset(7)) != protocol.awaits_all_metadata
    assert protocol.caught_up(image, registration, Offset(8))
