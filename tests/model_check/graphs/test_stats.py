"""Statistics of state graphs, beside what networkx says of the same graph."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import networkx
import pytest

from kspec.model_check.graphs import stats as graph_stats
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.stats import stats_as_json, stats_as_text, stats_of
from tests.model_check.commands import Command
from tests.model_check.engines.comparison import model_of
from tests.model_check.toy import counters


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("kip-320", {"replicas": 2, "max_epoch": 0}),
        ("async-isr", {"replicas": 2, "max_offset": 1, "max_partition_epoch": 1}),
    ],
)
def test_like_networkx(name: str, parameters: dict[str, Any]) -> None:
    graph = state_graph(model_of(name, parameters), 1)
    stats, theirs = stats_of(graph), graph.to_networkx()
    assert stats.components == Counter(len(part) for part in networkx.strongly_connected_components(theirs))
    assert stats.self_loops == networkx.number_of_selfloops(theirs)
    assert dict(enumerate(stats.in_degrees)) == Counter(degree for _, degree in theirs.in_degree()) | {
        degree: 0 for degree in range(len(stats.in_degrees)) if degree not in dict(theirs.in_degree()).values()
    }
    assert [number for number in stats.out_degrees if number] == [
        number for _, number in sorted(Counter(degree for _, degree in theirs.out_degree()).items())
    ]
    ways = dict(networkx.all_pairs_shortest_path_length(theirs))
    assert stats.eccentricity == max(ways[0].values()) == len(graph.levels) - 1
    assert stats.diameter == max(way for lengths in ways.values() for way in lengths.values())
    assert sum(stats.actions.values()) == len(graph.transitions)
    taken = Counter(edge["action"] for *_, edge in theirs.edges(data=True))
    assert stats.actions == {action: taken[action] for action in graph.model.action_names}


def test_what_is_never_taken_is_named() -> None:
    model = counters(3, cap=0)
    stats = stats_of(state_graph(model, 1))
    assert stats.never_taken == ["CountFirst(broker=1)", "CountSecond(broker=2)"]
    assert "CountSecond                                   0  never taken" in stats_as_text(stats)
    alone = stats_of(state_graph(model_of("kip-320", {"replicas": 2, "max_epoch": 1, "repair": ("keep-last-isr",)}), 1))
    assert not alone.never_taken


def test_beyond_a_size_the_diameter_is_only_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = state_graph(counters(), 1)
    assert stats_of(graph).diameter == 6
    monkeypatch.setattr(graph_stats, "MOST_STATES_FOR_DIAMETER", 5)
    stats = stats_of(graph)
    assert stats.diameter is None
    assert "diameter: at least that; computed exactly up to 5 states only" in stats_as_text(stats)
    assert stats_as_json(stats)["diameter"] is None


@pytest.mark.slow
def test_the_command_prints_and_draws(command: Command, tmp_path: Path) -> None:
    small = ("stats", "kip-320", "--replicas", "2", "--max-epoch", "0", "--plots", str(tmp_path / "plots"))
    done = command(*small, "--json")
    assert done.status == 0
    found = json.loads(done.stdout)
    assert (found["states"], found["transitions"], found["eccentricity"], found["deadlocks"]) == (93, 168, 11, 8)
    assert sum(found["levels"]) == sum(found["in_degrees"]) == 93
    drawn = sorted((tmp_path / "plots").iterdir())
    assert [path.name for path in drawn] == ["actions.png", "components.png", "degrees.png", "levels.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    done = command(*small, "--plot-format", "svg")
    assert "strongly connected components: 83, of which 10 have more than one state" in done.stdout
    assert "168 transitions by action" in (tmp_path / "plots" / "actions.svg").read_text()
