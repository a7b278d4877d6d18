"""The index of starting points: each run is still possible, as long as it says, and fails as it says."""

import json
from collections import Counter
from typing import Any

import pytest

from kspec.cli.explorer.recording import is_recording, last_view
from kspec.cli.site import starting_points
from kspec.cli.site.starting_points import FINDINGS, FORMAT, KEPT, OF_STUDIES, SAMPLES, STORY, index
from kspec.model_check.explorer import Explorer
from kspec.model_check.models import MODELS
from kspec.model_check.reports.mutants import ALL_MUTANTS, LIVENESS_HUNTS, NOT_CAUGHT
from kspec.model_check.reports.studies import STUDIES
from tests.places import REPOSITORY

INDEX = index()
GROUPS: dict[str, list[dict[str, Any]]] = {group["group"]: group["runs"] for group in INDEX["groups"]}
RUNS = [run for runs in GROUPS.values() for run in runs]
FIELDS = {"name", "title", "about", "address", "steps", "fails", "repaired", "doc", "model"}


def test_everything_that_should_have_a_run_has_one() -> None:
    assert INDEX["format"] == FORMAT
    names = {group: [run["name"] for run in runs] for group, runs in GROUPS.items()}
    assert names["story"] == [name for run in STORY for name in (run, f"{run}-repaired")]
    assert names["studies"] == [f"study-{study.name}" for study in STUDIES]
    assert names["findings"] == [f"finding-{name}" for name in (*OF_STUDIES, *FINDINGS, *KEPT)]
    assert names["mutants"] == [f"mutant-{name}" for name in ALL_MUTANTS if name not in NOT_CAUGHT]
    assert Counter(run["model"] for run in GROUPS["models"]) == dict.fromkeys(MODELS, SAMPLES)


def test_entries_are_whole_and_their_names_are_unique() -> None:
    assert all(set(run) - {"kept"} == FIELDS for run in RUNS)
    assert [run["name"] for run in RUNS if "kept" in run] == [f"finding-{name}" for name in KEPT]
    assert max(Counter(run["name"] for run in RUNS).values()) == 1
    assert all(run["name"].replace("-", "").replace(".", "").isalnum() for run in RUNS)
    assert all(run["title"] and run["about"] for run in RUNS)
    for run in RUNS:
        assert run["doc"] is None or (REPOSITORY / run["doc"]).is_file(), run["doc"]


OF_MODELS = {name: [run for run in runs if "kept" not in run] for name, runs in GROUPS.items()}


@pytest.mark.parametrize("name", KEPT)
def test_a_run_that_is_kept_is_as_the_index_says(name: str) -> None:
    (run,) = (run for run in GROUPS["findings"] if run["name"] == f"finding-{name}")
    recording = json.loads((starting_points.RUNS / run["kept"]).read_text(encoding="utf-8"))
    assert is_recording(recording)
    last = last_view(recording)
    assert (last["whole"], last["position"]) == (run["address"], run["steps"] + 1)
    assert [one["property"] for one in last["properties"] if one["verdict"] == "violated"] == run["fails"]
    assert "Apache Kafka 3.9.2" in last["run"]["words"]


def opened(run: dict[str, Any]) -> Explorer:
    """An explorer at the end of a run, which must be as the index says."""
    explorer = Explorer()
    view = explorer.answer({"do": "open", "address": run["address"]})
    assert view["answer"] == "view", view
    assert view["changed"] is None
    assert view["position"] == run["steps"] + 1
    assert view["run"]["model"] == run["model"]
    failing = [told["property"] for told in view["properties"] if told["verdict"] == "violated"]
    assert sorted(failing) == sorted(run["fails"])
    return explorer


@pytest.mark.parametrize("run", [*GROUPS["story"], *GROUPS["studies"], *OF_MODELS["findings"]], ids=lambda run: run["name"])
def test_a_run_that_a_page_tells_is_as_the_index_says(run: dict[str, Any]) -> None:
    explorer = opened(run)
    if run["repaired"]:
        under = explorer.answer({"do": "retrace", **run["repaired"]})
        assert under["answer"] == "retraced", under
        there = {told["property"]: told["there"] for told in under["properties"]}
        assert not run["fails"] or any(there.get(name) != "violated" for name in run["fails"])


@pytest.mark.slow
@pytest.mark.parametrize("group", ["mutants", "models"])
def test_other_runs_are_as_the_index_says(group: str) -> None:
    for run in GROUPS[group]:
        opened(run)


def test_a_run_of_a_study_or_mutant_fails_unless_it_goes_on_for_ever() -> None:
    endless = {f"mutant-{name}" for name in LIVENESS_HUNTS} | {
        f"finding-{name}" for name in FINDINGS if FINDINGS[name].infinite
    }
    beyond_repair = {f"finding-{name}" for name in (*FINDINGS, *KEPT) if name in KEPT or FINDINGS[name].repaired is None}
    for run in [*GROUPS["studies"], *GROUPS["findings"], *GROUPS["mutants"]]:
        assert bool(run["fails"]) != (run["name"] in endless), run["name"]
        assert (run["repaired"] is None) == (run["name"] in beyond_repair), run["name"]


def test_a_study_is_found_anew_as_it_is_kept() -> None:
    study = next(one for one in STUDIES if one.name == "kip-101-loss")
    assert [starting_points.of_study(study).as_json()] == [run for run in RUNS if run["name"] == "study-kip-101-loss"]


def test_samples_are_found_anew_as_they_are_kept() -> None:
    kept = [run for run in GROUPS["models"] if run["model"] == "shutdown"]
    assert json.loads(json.dumps([run.as_json() for run in starting_points.samples_of("shutdown")])) == kept


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("group", starting_points.GROUPS)
def test_all_runs_are_found_anew_as_they_are_kept(group: str) -> None:
    """The index is what `kspec site --find-runs` writes."""
    found = starting_points.GROUPS[group][1](None)
    assert json.loads(json.dumps([run.as_json() for run in found])) == GROUPS[group]


def test_the_index_has_the_groups_that_are_found() -> None:
    assert {group["group"]: group["title"] for group in INDEX["groups"]} == {
        name: title for name, (title, _) in starting_points.GROUPS.items()
    }
