"""Models, states, runs, explorations and graphs as notebooks show them; the examples of docs/notebook-examples.md."""

import ast
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import pytest

from kspec.model_check.core.exploration import Exploration, Limits, NotebookTrace, TraceStep
from kspec.model_check.core.model import Model, then, when
from kspec.model_check.engines.reference import explore
from kspec.model_check.explorer import notebook
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.notebook import MOST_DRAWN
from kspec.model_check.models import MODELS
from tests.limits.turns import Turns
from tests.places import DOCS

PAGE = (DOCS / "notebook-examples.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^## (.+?)\n.*?^```python\n(.*?)^```\n\nShows: (.*?)\.\n\n", PAGE, re.MULTILINE | re.DOTALL)
VOID = {"br", "hr", "img", "input", "meta", "link"}


class ElementParser(HTMLParser):
    """Reads HTML; notes its elements and attributes, its text, and what is not closed as it was opened."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All texts, with the attributes that are read aloud or stand under the pointer."""
        said = [value or "" for name, value in self.attributes if name in ("title", "aria-label")]
        return " ".join(" ".join([*self.texts, *said]).split())


def shown(value: Any) -> ElementParser:
    """The HTML that a notebook shows of a value, which is whole, has no script, and fetches nothing."""
    html = value._repr_html_()
    assert isinstance(html, str)
    read = ElementParser(html)
    assert read.open == []
    assert not {"script", "iframe", "object", "embed", "img", "link", "form"} & set(read.elements)
    assert not [
        name for name, _ in read.attributes if name.startswith("on") or name in ("src", "href", "srcset", "xlink:href")
    ]
    styles = "".join(value or "" for name, value in read.attributes if name == "style") + html.partition("</style>")[0]
    assert "url(" not in styles
    assert "@import" not in styles
    return read


def explored(model: Model) -> Exploration:
    return explore(model, model.properties, Limits(max_states=300))


def test_the_page_has_examples_of_ten_lines() -> None:
    assert len(EXAMPLES) == PAGE.count("\n## ") >= 8
    assert PAGE.count("```python") == len(EXAMPLES)
    for _, block, _ in EXAMPLES:
        assert len([line for line in block.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize(("block", "told"), [pytest.param(block, told, id=title) for title, block, told in EXAMPLES])
def test_an_example_shows_what_the_page_says(block: str, told: str) -> None:
    *before, last = ast.parse(block).body
    assert isinstance(last, ast.Expr)
    names: dict[str, Any] = {}
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    text = shown(eval(compile(ast.Expression(last.value), "cell", "eval"), names)).text
    phrases = re.findall(r"`([^`]+)`", told)
    assert phrases
    assert [phrase for phrase in phrases if phrase not in text] == []


@pytest.mark.parametrize("name", MODELS)
def test_every_model_its_states_and_its_runs_are_shown(name: str) -> None:
    model = MODELS[name].build({})
    assert f"model {name}" in shown(model).text
    shown(model.initial)
    result = explored(model)
    text = shown(result).text
    for verdict in result.verdicts:
        assert verdict.prop.name in text
        if verdict.trace:
            shown(verdict.trace)
            shown(verdict.trace[-1])


HOSTILE = '</style><script>alert("1")</script><img src=x onerror=alert(1)>&amp;'


def hostile() -> Model:
    """A model whose every text would be more than text."""
    model = Model(HOSTILE, {"switch": HOSTILE})
    slot = model.slot(HOSTILE, 0, words=lambda value: f"{HOSTILE}{value}")
    log = model.slot(f"{HOSTILE}2", HOSTILE, key=1, broker=1)
    model.action(HOSTILE, {"by": 1}, [when(lambda value: value < 2, slot)], [then(slot, lambda value: value + 1, slot)])
    model.always(HOSTILE, [when(lambda value, _: value < 2, slot, log)], HOSTILE)
    return model


def test_texts_are_escaped_everywhere() -> None:
    model = hostile()
    result = explored(model)
    trace = result.verdicts[0].trace
    assert trace is not None
    values: list[Any] = [model, model.initial, result, trace, trace[-1], state_graph(model)]
    for value in values:
        assert "alert" in shown(value).text
        assert HOSTILE not in value._repr_html_()


def test_the_violating_step_is_marked_once() -> None:
    model = MODELS["kip-320"].build({"replicas": 2, "log_size": 1, "max_records": 1, "max_epoch": 1, "acks": "1"})
    claim = model.property_named("AcknowledgedOnLeader")
    assert claim is not None
    (verdict,) = explore(model, [claim], Limits()).verdicts
    html = verdict.trace._repr_html_()  # type: ignore[union-attr]
    assert html.count('<td class="violated"') == 1
    text = ElementParser(html).text
    assert text.index("LeaderWrite leader 1") < text.index("AcknowledgedOnLeader violated; offset 0: m0(e0) in")


def test_a_shown_state_or_run_is_a_plain_one_to_all_else() -> None:
    model = MODELS["kip-101"].build({"replicas": 2})
    plain = tuple(slot for slot in model.initial)
    assert type(plain) is tuple
    assert (model.initial, hash(model.initial)) == (plain, hash(plain))
    again = pickle.loads(pickle.dumps(model.initial))
    assert (type(again), again) == (tuple, plain)
    trace = NotebookTrace(model, (TraceStep(None, plain),))
    assert trace == (TraceStep(None, plain),)
    copied = pickle.loads(pickle.dumps(trace))
    assert (type(copied), type(copied[0].state)) == (tuple, tuple)
    assert TraceStep(None, plain)._repr_html_() is None


def test_a_long_run_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "MOST_STEPS", 2)
    model = MODELS["truncate-to-hw"].build({"replicas": 2})
    trace = [TraceStep(None, model.initial)]
    turns = Turns()
    while len(trace) < 5:
        turns.go()
        ways = ((action, action.bind()(trace[-1].state)) for action in model.actions)
        trace.append(next(TraceStep(action, state) for action, state in ways if state is not None))
    assert "2 further steps are not shown" in shown(NotebookTrace(model, trace)).text


def test_a_large_graph_is_told_in_numbers() -> None:
    small = state_graph(MODELS["kip-101"].build({"replicas": 2, "max_epoch": 0, "max_records": 1, "log_size": 1}))
    large = state_graph(MODELS["kip-101"].build({"replicas": 2}))
    assert small.states <= MOST_DRAWN < large.states
    assert shown(small).elements.count("circle") == small.states
    assert "circle" not in shown(large).elements
    assert f"{large.states:,} states, {len(large.transitions):,} transitions" in shown(large).text


def test_the_core_loads_nothing_that_shows_until_it_is_asked() -> None:
    module = Model.shown_by.partition(":")[0]
    script = (
        "import sys; from kspec.model_check.core.model import Model; model = Model('m', {});"
        f" print({module!r} in sys.modules, model._repr_html_()[:19], {module!r} in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == 'False <div class="kspec"> True\n'
