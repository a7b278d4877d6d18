"""A broker and the controllers: whom it asks, and what it does when that one is gone."""

from kspec.impl.config.voters import Place, places_of
from kspec.impl.replica.controllers import KnownControllers
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.kinds.site import Fault
from kspec.trials.simulated.kinds.stops import ControllerKill
from kspec.trials.simulated.runs import run
from tests.trials.simulated.test_runs import of_three

PLACES = places_of(["101@a:1", "102@b:2", "103@[::1]:3"])


def test_controllers_are_asked_in_turn_until_one_names_the_leader() -> None:
    told: list[int] = []
    known = KnownControllers(PLACES)
    known.on_change = lambda: told.append(known.asked)
    assert known.are_several
    assert (known.asked, known.place) == (101, Place("a", 1))
    known.lose()
    known.hear(103)
    assert (known.asked, known.place) == (103, Place("::1", 3))
    known.hear(103)
    known.hear(7)
    assert known.asked == 101, "one that is not known leads: the next one is asked"
    known.hear(-1)
    assert told == [102, 103, 101, 102]


def test_a_controller_that_settings_name_is_reached_where_they_say_and_others_where_they_are() -> None:
    known = KnownControllers({101: Place("proxy", 1), -2: Place("first", 2)})
    known.hear(101, Place("itself", 9))
    assert known.place == Place("proxy", 1)
    known.hear(104, Place("d", 4))
    assert (known.asked, known.place) == (104, Place("d", 4))
    known.hear(104, Place("moved", 5))
    assert known.place == Place("moved", 5)
    known.hear(-1, Place("nobody", 6))
    assert known.asked != 104


def test_the_only_controller_is_asked_again() -> None:
    known = KnownControllers({100: Place("a", 1)})
    known.on_change = lambda: 1 / 0
    known.lose()
    known.hear(-1)
    known.hear(100)
    assert not known.are_several
    assert known.asked == 100


def test_brokers_go_on_when_controllers_are_killed_one_after_the_other() -> None:
    kills = [Fault(at_ms, ControllerKill, 1, 2, 2_000, Survives.NOTHING) for at_ms in (2_000, 9_000, 16_000)]
    outcome = run(of_three(3), 2_000, kills, most_ms=30_000)
    assert outcome.broken is None
    assert [line for line in outcome.told if "is killed" in line]
