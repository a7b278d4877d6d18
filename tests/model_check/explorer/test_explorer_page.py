"""The exchange in docs/explorer.md takes place as it is written, and the page names every message and error."""

import json
import re
from typing import Any

from kspec.model_check.explorer import Explorer
from tests.model_check.explorer.asking import JsonExplorer
from tests.places import DOCS, REPOSITORY

PAGE = (DOCS / "explorer.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```json (message|answer)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def contains(whole: Any, part: Any) -> bool:
    """Whether JSON has all that a part of it shows: fields of objects, and members of lists in order."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contains(whole[key], value) for key, value in part.items())
    if isinstance(part, list):
        rest = iter(whole)
        return (bool(part) or not whole) and all(any(contains(one, member) for one in rest) for member in part)
    return bool(whole == part)


def test_the_exchange_takes_place_as_it_is_written() -> None:
    page = JsonExplorer()
    assert [kind for kind, _ in BLOCKS] == ["message", "answer"] * 4
    for (_, message), (_, answer) in zip(BLOCKS[::2], BLOCKS[1::2], strict=True):
        fields = json.loads(message)
        told = page.ask(fields.pop("do"), **fields)
        assert contains(told, json.loads(answer)), json.dumps(told, indent=1)


def test_what_an_answer_lacks_is_seen() -> None:
    assert contains({"a": [1, {"b": 2}, 3]}, {"a": [{"b": 2}, 3]})
    assert not contains({"a": [1, {"b": 2}, 3]}, {"a": [3, {"b": 2}]})
    assert not contains({"a": [1]}, {"a": []})
    assert not contains({"a": 1}, {"b": 1})


def test_the_page_names_every_message_and_every_kind_of_error() -> None:
    known = Explorer().answer({"do": "?"})["words"].partition("commands: ")[2].split(", ")
    assert ["do", *known] == re.findall(r"^\| `(\w+)` \|", PAGE.partition("## A view")[0], re.MULTILINE)
    sources = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "model_check" / "explorer").glob("*.py"))
    kinds = set(re.findall(r'RefusedMessageError\(\s*"([a-z-]+)"', sources)) | {"bad-parameter", "bad-model"}
    assert kinds == set(re.findall(r"`([a-z]+-[a-z]+)`", PAGE.partition("## Errors")[2]))
