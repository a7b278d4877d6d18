"""Two sets of rules under the same actions: where they part, which rule makes the difference, and the shortest such run."""

import pytest

from tests.cli.explorer.page.conftest import LOSS, Tab

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("explorer page")]
SMALL = "truncate-to-hw~replicas.2~log-size.1~max-records.1~max-epoch.1~restarts.1~acks.all"


def test_a_release_beside_another_shows_where_they_part_and_by_which_rule(tab: Tab) -> None:
    tab.go().press("c")
    tab.page.locator('[data-key="beside-model"]').select_option("kip-101")
    tab.click("beside-show")
    assert "The two part at state 10" in tab.text("compare")
    assert tab.page.locator(".instead td").all_text_contents() == ["truncate_to_high_watermark", "truncate_to_epoch_end"]
    assert tab.page.locator(".side.here .record.missing").count() == 1
    assert tab.page.locator(".side.there .record.missing").count() == 0
    assert tab.page.locator(".side.there .log.differs .record.epoch-0").count() == 1
    assert "no property is violated" in tab.page.locator(".side.there").inner_text()
    assert tab.page.locator(".diagram .parting").count() == 2
    assert tab.fragment.endswith("&beside=kip-101")


def test_two_diagrams_are_seen_whole_where_there_is_room(tab: Tab) -> None:
    tab.go(f"{LOSS}&beside=kip-101")
    for place in tab.page.locator(".diagram .sides > *").all():
        assert place.evaluate("one => one.scrollWidth <= one.clientWidth"), place.inner_text()[:80]


def test_both_sides_step_together(tab: Tab) -> None:
    tab.go(f"{LOSS}@9&beside=kip-101").at(9, 11)
    assert "So far there is no difference" in tab.text("compare")
    tab.press("ArrowRight").at(10, 11)
    assert "leads elsewhere under kip-101" in tab.text("compare")
    tab.click("beside-close")
    assert tab.page.locator(".sides").count() == 0
    assert "beside" not in tab.fragment


def test_the_shortest_run_in_which_they_differ_is_found(tab: Tab) -> None:
    tab.go(SMALL).press("c")
    tab.page.locator('[data-key="beside-model"]').select_option("kip-101")
    tab.click("beside-differ")
    tab.page.locator(".found").filter(has_text="a difference between the two states").wait_for()
    tab.at(8, 8)
    assert "The two part at state 8" in tab.text("compare")


def test_a_repair_stands_beside_the_run_that_it_repairs(tab: Tab) -> None:
    tab.go(f"{LOSS}&beside=truncate-to-hw~repair.truncate-against-leader")
    assert "repaired: truncate-against-leader" in tab.text("state")


def test_a_step_that_is_not_possible_there_says_what_forbids_it(tab: Tab) -> None:
    steps = "ControllerElectLeader_replica.1~FencedBecomeFollowerAndTruncate_follower.2_leader.1_epoch.0"
    tab.go(f"kip-320~replicas.2~mutant.unfenced-truncation~~{steps}&beside=kip-320~mutant.")
    assert "is not possible under kip-320" in tab.text("compare")
    assert "fence(leader, role, epoch" in tab.page.locator(".forbids code.source").inner_text()
    assert tab.page.locator(".instead td").all_text_contents() == ["answer_anyone", "check_serves"]


def test_sides_are_swapped_and_swapped_back(tab: Tab) -> None:
    tab.go(f"{LOSS}&beside=kip-101~mutant.~repair.clamp-truncation").at(11, 11).click("beside-swap").at(11, 11)
    assert tab.fragment.startswith("kip-101~")
    assert tab.fragment.endswith("&beside=truncate-to-hw~repair.")
    assert "no property is violated" in tab.page.locator(".side.here").inner_text()
    tab.click("beside-swap").at(11, 11)
    assert tab.fragment.startswith("truncate-to-hw~")
    assert "AcknowledgedOnLeader" in tab.page.locator(".side.here").inner_text()


def test_a_step_that_does_not_exist_there_is_told(tab: Tab) -> None:
    steps = "ControllerShrinkIsr_replica.1~ControllerElectUncleanLeader_replica.1"
    tab.go(f"{SMALL}~unclean.on~~{steps}&beside=truncate-to-hw~unclean.off")
    assert "which has no such action" in tab.text("compare")


def test_models_without_a_common_slot_say_so(tab: Tab) -> None:
    tab.go("kafka~release.2.0~~CreatePartition_leader.1&beside=kafka~release.4.4")
    assert "different slots" in tab.text("compare")
