"""Each control of the page: stepping, branching, undoing, jumping, what forbids a move, properties, searches, keys."""

import pytest

from tests.cli.explorer.page.conftest import LOSS, Tab

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("explorer page")]
SMALL = "truncate-to-hw~replicas.2~log-size.1~max-records.1~max-epoch.1~restarts.1~acks.all"


def test_a_link_opens_the_run_and_shows_what_is_lost(tab: Tab) -> None:
    tab.go().at(11, 11)
    assert "✕ m0(e0) is missing" in tab.text("state")
    assert "controller → broker 1 2 leads in epoch 1, ISR {1, 2}" in tab.text("state")
    assert "4 violated here" in tab.text("properties")
    assert "offset 0: acknowledged has m0(e0); log[2] has nothing" in tab.text("properties")
    diagram = tab.page.locator("svg.space-time")
    assert diagram.locator(".violating").count() == 2
    assert [" ".join(mark.locator("text").all_text_contents()) for mark in diagram.locator(".mark").all()] == [
        "▣ m0(e0) committed",
        "✓ m0(e0) acknowledged",
        "✕ m0(e0) lost",
    ]


def test_back_forward_first_last_and_the_slider(tab: Tab) -> None:
    tab.go().click("back").at(10, 11).click("first").at(1, 11)
    assert "No step has been taken" in tab.text("step")
    tab.click("forward").at(2, 11).click("last").at(11, 11).click("violation").at(10, 11)
    tab.page.locator('[data-key="slider"]').focus()
    tab.press("ArrowLeft").at(9, 11)
    assert tab.fragment.endswith("@9")


def test_a_branch_takes_the_place_of_the_steps_behind_it_and_undo_goes_back(tab: Tab) -> None:
    tab.go(f"{LOSS}@8").at(8, 11)
    tab.page.locator(".possible button").filter(has_text="ControllerShrinkIsr").first.click()
    tab.at(9, 9).click("undo").at(8, 9)
    assert "ControllerShrinkIsr" in tab.fragment


def test_the_buttons_of_the_browser_go_through_what_was_shown(tab: Tab) -> None:
    tab.go().at(11, 11).press("ArrowLeft").at(10, 11).press("Home").at(1, 11)
    tab.page.go_back()
    tab.at(10, 11)
    tab.page.go_forward()
    tab.at(1, 11)


def test_what_forbids_a_move_is_told_with_its_rules(tab: Tab) -> None:
    tab.go(SMALL).at(1, 1)
    tab.page.locator('[data-key="forbidden-broker 1"] > summary').click()
    one = tab.page.locator('[data-key="forbidden-broker 1"] details').first
    one.locator("summary").first.click()
    assert one.locator("code.source").first.inner_text() == "is_leader"
    assert "announcement[0]" in one.inner_text()
    one.locator(".rule").first.wait_for()


def test_actions_are_filtered(tab: Tab) -> None:
    tab.go(SMALL).press("/")
    tab.page.keyboard.type("elect 2")
    tab.settled()
    assert tab.page.locator(".possible button").count() == 1
    assert tab.page.evaluate("document.activeElement.dataset.key") == "filter"
    tab.page.locator('[data-key="filter"]').fill("")


def test_a_step_names_its_rules_and_their_mutants(tab: Tab) -> None:
    tab.go("kafka~release.next~brokers.3~values.1~elections.1~~CreatePartition_leader.1~ReplayMetadata_broker.1_decisions.1")
    rule = tab.page.locator(".step .rule").filter(has=tab.page.locator(".mutants")).first
    rule.locator("summary").first.click()
    assert "Kafka:" in rule.inner_text()
    assert "releases)" in rule.inner_text() or "of next" in rule.inner_text()
    name = rule.locator(".mutants button").first.inner_text()
    rule.locator(".mutants button").first.click()
    tab.settled()
    assert tab.fragment.endswith(f"&beside=kafka~mutant.{name}")
    assert f"with mutant {name}" in tab.text("state")


def test_a_difference_to_any_state_is_shown(tab: Tab) -> None:
    tab.go()
    tab.page.locator('[data-key="diff"] > summary').click()
    tab.page.locator('[data-key="diff-from"]').fill("10")
    tab.page.locator('[data-key="diff-show"]').click()
    tab.page.locator(".diff td").filter(has_text="2 leads in epoch 1").wait_for()


def test_a_violation_is_found_and_opened(tab: Tab) -> None:
    tab.go(SMALL).press("f")
    tab.page.locator('[data-key="find-property"]').select_option("AcknowledgedOnLeader")
    tab.click("find-go")
    tab.page.locator(".found").wait_for()
    assert "Found: a violation, 10 steps" in tab.page.locator(".found").inner_text()
    tab.at(11, 11).press("Escape").click("dismiss-found")
    assert tab.page.locator(".found").count() == 0


def test_a_search_tells_how_far_it_is_and_stops(tab: Tab) -> None:
    tab.go("kafka~release.next~brokers.3~values.2~elections.3~fencings.2").press("f")
    tab.page.locator('[data-key="find-states"]').fill("3000000")
    tab.page.locator('[data-key="find-go"]').click()
    tab.page.locator(".searching").filter(has_text="states").wait_for()
    tab.page.locator('[data-key="cancel"]').click()
    tab.page.locator(".found").filter(has_text="interrupted").wait_for()
    tab.settled()


def test_a_run_is_begun_with_a_form(tab: Tab) -> None:
    tab.go(SMALL).press("n")
    tab.click("model-kip-279")
    tab.page.locator("#parameter-replicas").fill("2")
    tab.page.locator('[data-key="more-parameters"] > summary').click()
    tab.page.locator("#parameter-unclean").check()
    tab.page.locator("#parameter-repair").select_option(["clamp-truncation"])
    tab.click("start").at(1, 1)
    assert tab.fragment.startswith("kip-279~replicas.2~")
    assert "~unclean.on~" in tab.fragment
    assert "~repair.clamp-truncation" in tab.fragment


def test_the_way_back_from_the_beginnings_leads_to_the_run(tab: Tab) -> None:
    tab.go(f"{LOSS}@4").press("n")
    assert not tab.page.locator(".pane.bar").is_visible()
    tab.click("to-run").at(4, 11)
    tab.press("n").press("Escape").at(4, 11)


def test_a_run_that_there_is_is_begun_with_a_link(tab: Tab) -> None:
    tab.go(SMALL).press("n")
    tab.page.locator('[data-key="starts-studies"] > summary').click()
    tab.page.locator('[data-key="starts-studies"] a').filter(has_text="beside its repair").first.click()
    tab.page.locator(".verdict.apart").wait_for()
    tab.settled()
    assert "&beside=" in tab.fragment


@pytest.mark.parametrize("model", ["kip-320", "async-isr", "kafka", "messages", "controller", "shutdown"])
def test_every_kind_of_model_is_stepped_by_number_keys(tab: Tab, model: str) -> None:
    tab.go(model).press("1").at(2, 2).press("2").at(3, 3)
    assert tab.page.locator(".stage .card").count() >= 1
    assert tab.page.locator("svg.space-time .step").count() == 2


def test_the_list_of_keys_has_them_all_and_closes(tab: Tab) -> None:
    tab.go(SMALL).press("?")
    listed = tab.page.locator("dialog .keys kbd").all_text_contents()
    assert {"←", "→", "Home", "End", "1", "9", "u", "v", "/", "n", "c", "f", "d", "t", "Esc", "?"} <= set(listed)
    tab.press("Escape")
    assert not tab.page.locator("dialog").is_visible()


def test_keys_do_what_the_list_says(tab: Tab) -> None:
    tab.go().press("v").at(10, 11).press("k").at(9, 11).press("j").at(10, 11).press("u").at(9, 11).press("End").at(11, 11)
    tab.press("c")
    assert tab.page.locator('[data-key="beside-show"]').is_visible()
    tab.press("Escape").press("d")
    assert tab.page.locator('[data-key="download-itf"]').is_visible()
    tab.press("Escape")
    before = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.press("t").press("t")
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    tab.press("t")


def test_a_button_keeps_the_focus_when_the_page_is_drawn_anew(tab: Tab) -> None:
    tab.go().at(11, 11)
    tab.page.locator('[data-key="back"]').focus()
    tab.press("Enter").at(10, 11)
    assert tab.page.evaluate("document.activeElement.dataset.key") == "back"


def test_a_region_stays_as_far_scrolled_as_it_was(tab: Tab) -> None:
    scrolled = "[...document.querySelectorAll('[data-scrolled]')].map((one) => one.scrollLeft)"
    tab.page.set_viewport_size({"width": 500, "height": 900})
    tab.go().at(11, 11)
    tab.page.evaluate("for (const one of document.querySelectorAll('[data-scrolled]')) one.scrollLeft = 40")
    tab.page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    before = tab.page.evaluate(scrolled)
    assert max(before) > 0
    tab.press("ArrowLeft").at(10, 11)
    assert tab.page.evaluate(scrolled) == before
    tab.press("ArrowLeft").at(9, 11)
    assert tab.page.evaluate(scrolled) == before
    tab.page.set_viewport_size({"width": 1440, "height": 1000})
