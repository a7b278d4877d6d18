"""State, enabled moves and verdicts are the same in Pyodide, behind the server, and in the engines."""

import gzip
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kspec.cli.explorer.live import write_worker
from kspec.cli.explorer.npm import PYODIDE_PROGRAM, PackageError
from kspec.cli.explorer.server import application
from kspec.model_check.core.model import Action, Model, State
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.graph import StateGraph
from kspec.model_check.models import MODELS
from kspec.model_check.traces.encode import as_json
from kspec.model_check.traces.render import slot_in_words
from tests.limits.marks import marked
from tests.model_check.explorer import walks
from tests.model_check.explorer.walks import BOUNDS, walk

FEW, MANY = 30, 1_000
STEPS = marked([FEW, MANY], nightly=[MANY])
NODE = Path(walks.__file__).with_name("pyodide.mjs")
SCRIPT = """
import json
from kspec.model_check.explorer import Explorer
told = {model: walk(Explorer().answer, model, bounds, STEPS) for model, bounds in BOUNDS.items()}
print(json.dumps(told))
"""


def test_every_model_is_walked() -> None:
    assert list(BOUNDS) == list(MODELS)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    page = tmp_path_factory.mktemp("page")
    (page / "index.html").write_text("")
    with TestClient(application({}, page), base_url="http://127.0.0.1") as found:
        yield found


def walked_behind_the_server(client: TestClient, model: str, steps: int) -> list[dict[str, Any]]:
    def ask(message: dict[str, Any]) -> dict[str, Any]:
        answer = client.post(f"/message?session=walk-{model}", json=message)
        told: dict[str, Any] = answer.json()
        return told

    return walk(ask, model, BOUNDS[model], steps)


@pytest.mark.slow
@pytest.mark.parametrize("steps", STEPS)
def test_pyodide_and_server_say_the_same(client: TestClient, steps: int, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("NOT RUN: node is not installed")
    try:
        write_worker(tmp_path)
    except PackageError as error:
        pytest.skip(f"NOT RUN: {error}")
    program = tmp_path / "pyodide" / PYODIDE_PROGRAM  # as the worker unpacks it
    program.write_bytes(gzip.decompress(program.with_name(f"{program.name}.packed").read_bytes()))
    script = tmp_path / "script.py"
    script.write_text(Path(walks.__file__).read_text() + SCRIPT.replace("STEPS", str(steps)))
    done = subprocess.run([node, NODE, tmp_path, script], capture_output=True, text=True, check=False, timeout=850)
    assert done.returncode == 0, done.stderr[-2000:]
    for model, seen in json.loads(done.stdout).items():
        there = walked_behind_the_server(client, model, steps)
        assert len(there) == len(seen) == steps + 1
        for number, (one, other) in enumerate(zip(seen, there, strict=True)):
            assert one == other, (model, number)


@pytest.mark.slow
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("model", BOUNDS)
def test_server_and_engines_say_the_same(client: TestClient, model: str, steps: int) -> None:
    """The compiled engine's graph has each state, the moves that leave it, and whether properties hold there."""
    entry = MODELS[model]
    given = {name.replace("-", "_"): value for name, value in BOUNDS[model].items()}
    graph = state_graph(entry.build(given), workers=1)
    number = 0
    for seen in walked_behind_the_server(client, model, steps):
        number = 0 if seen["step"] is None else followed(graph, number, seen)
        state = graph.state(number)
        assert in_words(graph.model, state) == seen["state"], seen["address"]
        assert {action for action, _ in leaving(graph, number)} == {json.dumps(one) for one in seen["enabled"]}
        for prop in graph.model.properties:
            verdict = seen["verdicts"][prop.name]
            if prop.kind == "always":
                assert (verdict == "holds") is prop.bind()(state), (prop.name, seen["address"])
            elif prop.bind()(state):
                assert verdict == "reached", (prop.name, seen["address"])


def leaving(graph: StateGraph, number: int) -> Iterator[tuple[str, int]]:
    """The actions that leave a state of the graph, each with the state to which it leads."""
    moves = graph.transitions
    for one in range(int(moves.first[number]), int(moves.first[number + 1])):
        yield text_of(graph.model.actions[moves.action[one]]), int(moves.target[one])


def followed(graph: StateGraph, number: int, seen: dict[str, Any]) -> int:
    """The state of the graph to which the step leads that was seen."""
    taken = json.dumps(seen["step"])
    targets = {target for action, target in leaving(graph, number) if action == taken}
    (found,) = [target for target in targets if in_words(graph.model, graph.state(target)) == seen["state"]]
    return found


def in_words(model: Model, state: State) -> dict[str, str]:
    return {
        slot.label: slot_in_words(slot, value)
        for slot, value in zip(model.slots, state, strict=True)
        if not slot.bookkeeping
    }


def text_of(action: Action) -> str:
    return json.dumps([action.name, as_json(action.args)])
