"""All planted bugs."""

from tests.planted_bugs.controller import CONTROLLER_BUGS
from tests.planted_bugs.follower import FOLLOWER_BUGS
from tests.planted_bugs.leader import LEADER_BUGS
from tests.planted_bugs.others import OTHER_BUGS
from tests.planted_bugs.planting import PlantedBug

BUGS: tuple[PlantedBug, ...] = (*LEADER_BUGS, *FOLLOWER_BUGS, *CONTROLLER_BUGS, *OTHER_BUGS)
BY_NAME = {bug.name: bug for bug in BUGS}
