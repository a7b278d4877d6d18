"""The releases by name: which is the newest, and whose controller a cluster of one release has."""

from typing import TypeVar

from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.coordinator.protocol import CoordinatorProtocol
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.releases.broker import BROKER_NEXT, BROKER_RELEASES, NEWEST
from kspec.spec.releases.coordinator import COORDINATOR_RELEASES
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.releases.quorum import QUORUM_RELEASES

RulesT = TypeVar("RulesT")

RELEASES = tuple(release.name for release in BROKER_RELEASES)
"""All of them, the oldest first; `next` is the last."""

NEWEST_RELEASE = NEWEST.name
"""The newest release of Kafka."""

FIRST_KRAFT = RELEASES.index(KRAFT_RELEASES[0].name)
"""From this release on the controller is a KRaft controller; before, it works on ZooKeeper."""

KRAFT_NAMES = RELEASES[FIRST_KRAFT:]
"""The releases with a KRaft controller."""


def default_release(mutant: str | None = None) -> str:
    """The release that a tool takes which was told no other: the newest.

    With a mutant it is `next`, which has no known defect: what fails then is due to the weakened rule.
    """
    return BROKER_NEXT.name if mutant else NEWEST_RELEASE


def kraft_of(release: str) -> ControllerProtocol:
    """The rules of a release's KRaft controller: those that the latest release up to this one has changed.

    A `KeyError` if its controller works on ZooKeeper.
    """
    return _in_force({rules.name: rules for rules in KRAFT_RELEASES}, KRAFT_RELEASES[0], KRAFT_NAMES)[release]


def coordinator_of(release: str) -> CoordinatorProtocol:
    """The rules of a release's group coordinator: those that the latest release up to this one has changed.

    A weakened rule of the broker (`RELEASE with MUTANT`) leaves the coordinator as it is.
    """
    changed = {rules.name: rules for rules in COORDINATOR_RELEASES}
    return _in_force(changed, COORDINATOR_RELEASES[0], RELEASES)[release.partition(" with ")[0]]


def quorum_of(release: str) -> QuorumProtocol:
    """The rules of a release's quorum of controllers: those that the latest release up to this one has changed.

    A controller's name may have a weakened rule behind it (`RELEASE with MUTANT`), which leaves the quorum as it is. For a
    release without KRaft they are those of the first one.
    """
    changed = {rules.name: rules for rules in QUORUM_RELEASES}
    return _in_force(changed, QUORUM_RELEASES[0], RELEASES)[release.partition(" with ")[0]]


def _in_force(changed: dict[str, RulesT], first: RulesT, names: tuple[str, ...]) -> dict[str, RulesT]:
    """The rules of each release, by those that have changed them; the oldest release has the first."""
    found: dict[str, RulesT] = {}
    latest = first
    for name in names:
        latest = found[name] = changed.get(name, latest)
    return found
