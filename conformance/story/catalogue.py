"""Which studies processes can go through, by which rules they fail there, and by which they do not."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from conformance.story.words import UnknownStoryError
from model_check.core.nearest import instead_of
from model_check.reports.studies.catalogue import STUDIES
from model_check.reports.studies.study import Study
from spec.releases.names import FIRST_KRAFT, KRAFT_NAMES, RELEASES

ON_LEADER, IN_ISR, COMMITTED, SAME_LOGS = (
    "AcknowledgedOnLeader",
    "AcknowledgedOnNextLeader",
    "CommittedOnNextLeader",
    "LogMatching",
)
"""The properties of model `kafka` whose failure can be seen in logs, acknowledgements and the ISR."""


class Story(NamedTuple):
    """A study as processes show it.

    - `failing`, `repaired`: the release that all nodes have, and a mutant of it or none;
    - `bounds`: of model `kafka`, in which the run is looked for; `invariant`: the property that it violates.
    """

    name: str
    failing: tuple[str, str | None]
    repaired: tuple[str, str | None]
    bounds: Mapping[str, Any]
    invariant: str

    @property
    def study(self) -> Study:
        """The study of this name."""
        return next(study for study in STUDIES if study.name == self.name)


def controller_release(release: str) -> str:
    """The release whose KRaft controller a cluster of this release has: the oldest one, for releases before."""
    return release if RELEASES.index(release) >= FIRST_KRAFT else KRAFT_NAMES[0]
