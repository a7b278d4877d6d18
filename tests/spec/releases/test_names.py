"""The releases by name, and the controller of each."""

import pytest

from kspec.spec.releases import broker
from kspec.spec.releases.kraft import KRAFT_3_0, KRAFT_3_9, KRAFT_4_3, KRAFT_NEXT, KRAFT_RELEASES, NEWEST
from kspec.spec.releases.names import KRAFT_NAMES, NEWEST_RELEASE, RELEASES, default_release, kraft_of
from kspec.spec.releases.zookeeper import ZK_RELEASES


def test_the_newest_release_is_the_last_before_next() -> None:
    assert RELEASES[-2:] == (broker.NEWEST.name, broker.BROKER_NEXT.name)
    assert RELEASES[-2] == NEWEST_RELEASE
    assert kraft_of(NEWEST_RELEASE) is NEWEST


@pytest.mark.parametrize(
    ("release", "rules"),
    [
        ("3.0", KRAFT_3_0),
        ("3.1", KRAFT_3_0),
        ("3.9.1", KRAFT_3_9),
        ("4.3", KRAFT_4_3),
        ("4.4", KRAFT_4_3),
        ("next", KRAFT_NEXT),
    ],
)
def test_a_release_has_the_controller_that_the_last_one_changed(release: str, rules: object) -> None:
    assert kraft_of(release) is rules


def test_every_release_has_one_kind_of_controller() -> None:
    assert {rules.name for rules in KRAFT_RELEASES} <= set(KRAFT_NAMES)
    assert not {rules.name for rules in ZK_RELEASES} & set(KRAFT_NAMES)
    with pytest.raises(KeyError, match=r"2\.8"):
        kraft_of("2.8")


def test_a_mutant_weakens_next_if_nothing_else_is_asked_for() -> None:
    assert default_release() == NEWEST_RELEASE
    assert default_release("min-isr-of-one") == broker.BROKER_NEXT.name
