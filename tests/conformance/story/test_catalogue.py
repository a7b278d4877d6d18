"""Studies as stories: each study is one, or a reason is given."""

import pytest

from kspec.conformance.story.catalogue import NOT_ON_PROCESSES, STORIES, WHAT_IS_WRONG, page, story_named
from kspec.conformance.story.errors import UnknownStoryError
from kspec.conformance.story.rendering import SENTENCES
from kspec.conformance.story.steps import STEP_FUNCTIONS
from kspec.model_check.reports.studies.catalogue import STUDIES
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.names import RELEASES
from tests.places import DOCS


def test_each_study_is_a_story_or_has_a_reason() -> None:
    names = {study.name for study in STUDIES}
    assert STORIES.keys() | NOT_ON_PROCESSES.keys() == names
    assert STORIES.keys() & NOT_ON_PROCESSES.keys() == set()


@pytest.mark.parametrize("name", STORIES)
def test_a_story_names_rules_that_there_are_and_changes_something(name: str) -> None:
    story = STORIES[name]
    assert {story.failing.release, story.repaired.release} <= set(RELEASES)
    assert story.failing.mutant in {None, *(mutant.name for mutant in BROKER_MUTANTS)}
    assert story.invariant in WHAT_IS_WRONG
    assert story.fails_with != story.holds_with
    assert story.study.name == name


def test_an_unknown_story_gets_the_nearest_names() -> None:
    with pytest.raises(UnknownStoryError, match="kip-101-loss"):
        story_named("kip-101-los")


def test_a_story_that_processes_cannot_show_says_why() -> None:
    with pytest.raises(UnknownStoryError, match="processes cannot show latest-offset: nothing is lost"):
        story_named("latest-offset")


def test_the_table_in_the_docs_is_what_the_command_prints() -> None:
    assert "\n".join(page()) in (DOCS / "cluster.md").read_text(encoding="utf-8")


def test_each_step_that_processes_take_has_a_sentence() -> None:
    assert SENTENCES.keys() == STEP_FUNCTIONS.keys()
