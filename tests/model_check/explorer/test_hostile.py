"""Messages that nobody should send: each is an error in one short line, quickly, and the run stays as it was."""

from typing import Any

import pytest

from kspec.model_check.explorer.address import MOST_LETTERS
from kspec.model_check.explorer.errors import LONGEST
from tests.model_check.explorer.asking import JsonExplorer

MANY = 400_000
LETTERS, DIGITS, NUMBER = "a" * MANY, "9" * MANY, 10**1000
ELECT = "ControllerElectLeader"
TRACE = {"#meta": {"model": "kip-101", "parameters": {}}}

STARTS: list[dict[str, Any]] = [
    {},
    {"model": None},
    {"model": 7},
    {"model": [1] * MANY},
    {"model": LETTERS},
    {"model": "kip-101", LETTERS: 1},
    {"model": "kip-101", "parameters": [1]},
    {"model": "kip-101", "parameters": {LETTERS: 1}},
    {"model": "kip-101", "parameters": {"acks": LETTERS}},
    {"model": "kip-101", "parameters": {"replicas": NUMBER}},
    {"model": "kip-101", "parameters": {"replicas": -5}},
    {"model": "kip-101", "parameters": {"replicas": 2.5}},
    {"model": "kip-101", "parameters": {"replicas": True}},
    {"model": "kip-101", "parameters": {"replicas": float("nan")}},
    {"model": "kip-101", "parameters": {"replicas": {}}},
    {"model": "kip-101", "parameters": {"log": None}},
    {"model": "kip-101", "parameters": {"log": ["a"]}},
    {"model": "kip-101", "parameters": {"repair": [LETTERS]}},
    {"model": "kip-101", "parameters": {"repair": "x"}},
    {"model": "kip-101", "release": "4.4"},
    {"model": "kafka", "release": LETTERS},
    {"model": "kafka", "mutant": LETTERS},
    {"model": "kafka", "mutant": 7},
    {"model": "async-isr", "parameters": {"replicas": 12}},
    {"model": "messages", "parameters": {"max-epoch": 50}},
]

ADDRESSES: list[Any] = [
    None,
    7,
    "",
    "~",
    "~~~~~~",
    "é",
    "kip 101",
    "kip-101%",
    "kip-101%zz",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    LETTERS,
    "%41" * 100_000,
    "~" * MANY,
    "a" * (MOST_LETTERS + 1),
    f"kip-101~replicas.{DIGITS}",
    "kip-101~replicas.x",
    "kip-101~replicas.-2",
    "kip-101~replicas.2~replicas.3",
    "kip-101" + "~replicas.2" * 30_000,
    f"kip-101~{LETTERS}",
    f"kip-101~{LETTERS}.2",
    f"kip-101~acks.{LETTERS}",
    "kip-101~repair." + "_".join(["x"] * 100_000),
    f"kafka~release.{LETTERS}",
    "kip-101~~" + "A~" * 200_000,
    "kip-101~~" + "~".join([f"{ELECT}_replica.1"] * 1_001),
    f"kip-101~~A_{LETTERS}",
    f"kip-101~~A_b.{DIGITS}",
    "kip-101~~A_b.1_b.1",
    "kip-101~~A_x.t" + ".x" * 100_000,
    f"kip-101~~~~{LETTERS}",
    "kip-101~~~~0000000g",
]

OTHERS: list[dict[str, Any]] = [
    {"do": None},
    {"do": LETTERS},
    {"do": "step"},
    {"do": "step", "action": None},
    {"do": "step", "action": LETTERS},
    {"do": "step", "action": ELECT, "args": {LETTERS: 1}},
    {"do": "step", "action": ELECT, "args": {"replica": NUMBER}},
    {"do": "step", "action": ELECT, "args": {"replica": LETTERS}},
    {"do": "step", "action": ELECT, "args": {"replica": [1] * MANY}},
    {"do": "step", "index": NUMBER},
    {"do": "step", "index": -1},
    {"do": "step", "index": 0, "choice": NUMBER},
    {"do": "step", "index": 0, "choice": 0},
    {"do": "why", "action": LETTERS},
    {"do": "undo"},
    {"do": "jump", "to": NUMBER},
    {"do": "jump", "to": 0},
    {"do": "diff", "from": NUMBER},
    {"do": "find"},
    {"do": "find", "property": LETTERS},
    {"do": "find", "property": "StrongIsr", "start": LETTERS},
    {"do": "find", "property": "StrongIsr", "states": -NUMBER},
    {"do": "retrace", "model": LETTERS},
    {"do": "retrace", "address": LETTERS},
    {"do": "differ", "address": f"kip-101~{LETTERS}"},
    {"do": "differ", "model": "kip-101", "until": LETTERS},
    {"do": "export", "as": LETTERS},
    {"do": "import", "trace": {}},
    {"do": "import", "trace": {LETTERS: 1}},
    {"do": "import", "trace": {"#meta": 7}},
    {"do": "import", "trace": {"#meta": {"model": LETTERS, "parameters": {}}, "states": []}},
    {"do": "import", "trace": {"#meta": {"model": "kip-101", "parameters": {LETTERS: 2}}, "states": []}},
    {"do": "import", "trace": {"#meta": {"model": "kip-101", "parameters": []}, "states": []}},
    {"do": "import", "trace": {**TRACE, "states": None}},
    {"do": "import", "trace": {**TRACE, "states": [1, 2, 3]}},
    {"do": "import", "trace": {**TRACE, "states": [{"action": "init"}] * 1_002}},
    *(
        {"do": "import", "trace": {"model": "kip-101", "parameters": {}, "properties": wrong}}
        for wrong in (7, [7], [{"trace": [7]}], {"a": 1}, None)
    ),
]

MESSAGES = [
    *({"do": "start", **start} for start in STARTS),
    *({"do": "open"} if address is None else {"do": "open", "address": address} for address in ADDRESSES),
    *OTHERS,
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_it_is_one_short_error(number: int) -> None:
    page = JsonExplorer()
    before = page.view("start", model="kip-101", parameters={"replicas": 2})
    answer = page.ask(**MESSAGES[number])
    assert answer["answer"] == "error"
    assert "\n" not in answer["words"]
    assert 10 < len(answer["words"]) < LONGEST + 10
    assert page.view("view") == before


@pytest.mark.parametrize(
    "message",
    [
        {"do": "open", "address": f"kip-101~~{LETTERS}"},
        {"do": "open", "address": f"kip-101~~{ELECT}_{LETTERS}.1"},
        {"do": "open", "address": f"kip-101~~{ELECT}_replica.1_.999999999"},
        {"do": "import", "trace": {**TRACE, "states": [{"action": "init"}, {"action": LETTERS}]}},
        {"do": "import", "trace": {**TRACE, "states": [{"action": "init"}, {"action": ELECT, "args": {"replica": {}}}]}},
    ],
    ids=range(5),
)
def test_a_run_whose_step_does_not_exist_ends_before_it(message: dict[str, Any]) -> None:
    view = JsonExplorer().view(**message)
    assert (view["position"], view["changed"]["at"]) == (1, 2)
    assert len(view["changed"]["words"]) < LONGEST + 50
