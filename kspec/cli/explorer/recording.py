"""A recorded run: the views of all its positions as one JSON document, which a page steps through without a back end."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from kspec.model_check.explorer import Explorer
from kspec.model_check.explorer.files.writing import WRITERS

FORMAT = 1
"""The number of the form that the document has."""

SHORTEST = 40
"""Characters from which on a part that is there twice is written once."""

SHARED = "$"
"""The one key of what stands in the place of a shared part: its number."""


class RecordingError(ValueError):
    """A run that cannot be recorded. The message is one line."""


def recorded(address: str, messages: Sequence[dict[str, Any]] = (), files: bool = True) -> dict[str, Any]:
    """The run with this address, and the answers to these messages at each position; with `files` the whole run as a file of
    each form, which a page without a back end lets one download.

    `RecordingError` if the address does not lead to where it says.
    """
    explorer = Explorer()
    last = explorer.answer({"do": "open", "address": address})
    if last["answer"] != "view" or last["changed"]:
        raise RecordingError(last["words"] if last["answer"] != "view" else last["changed"]["words"])
    views, answers = [], []
    for position in range(1, last["position"] + 1):
        views.append(explorer.answer({"do": "jump", "to": position}))
        answers += [{"position": position, "message": one, "answer": explorer.answer(one)} for one in messages]
    for form in WRITERS if files else ():
        message = {"do": "export", "as": form}
        answers.append({"position": last["position"], "message": message, "answer": explorer.answer(message)})
    return shortened({"format": FORMAT, "views": views, "answers": answers})


def is_recording(document: Any) -> bool:
    """Whether a document is a recording that the page can step: its views, and what they share."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return False
    views, shared = document.get("views"), document.get("shared", [])
    return isinstance(views, list) and bool(views) and isinstance(shared, list)


def last_view(recording: dict[str, Any]) -> dict[str, Any]:
    """The last view of a recording, with its shared parts where they stand."""
    shared = recording.get("shared", [])

    def unfold(value: Any) -> Any:
        if isinstance(value, list):
            return [unfold(one) for one in value]
        if not isinstance(value, dict):
            return value
        return unfold(shared[value[SHARED]]) if list(value) == [SHARED] else {key: unfold(one) for key, one in value.items()}

    found: dict[str, Any] = unfold(recording["views"][-1])
    return found


def title_of(recording: dict[str, Any]) -> str:
    """The title of a recorded run, for the page's head. `RecordingError` if it is not whole."""
    try:
        return f"A run of {last_view(recording)['run']['model']}"
    except (KeyError, IndexError, TypeError, RecursionError) as error:
        raise RecordingError(f"this recording is not whole: {type(error).__name__} {error}") from error


def shortened(document: dict[str, Any]) -> dict[str, Any]:
    """The document with each part that is there several times written once, in `shared`; `{"$": N}` stands for the Nth.

    A shared part may have shared parts of a smaller number in it.
    """
    parts = DistinctParts()
    whole = [parts.number_of(value) for value in document.values()]
    times = Counter([*whole, *(inner for part in parts.inside for inner in part)])
    shared: list[Any] = []
    places: dict[int, int] = {}

    def folded(value: Any) -> Any:
        if not isinstance(value, dict | list):
            return value
        number = parts.number_of(value)
        if number in places:
            return {SHARED: places[number]}
        inner = (
            [folded(one) for one in value] if isinstance(value, list) else {key: folded(one) for key, one in value.items()}
        )
        if times[number] < 2 or parts.letters[number] < SHORTEST:
            return inner
        places[number] = len(shared)
        shared.append(inner)
        return {SHARED: places[number]}

    return {**{key: folded(value) for key, value in document.items()}, "shared": shared}


class DistinctParts:
    """The distinct parts of a JSON document by number: equal parts have one, whatever the order of their keys.

    `inside` has the numbers of what is in a part, `letters` how long it is as text.
    """

    def __init__(self) -> None:
        self.inside: list[tuple[int, ...]] = []
        self.letters: list[int] = []
        self._known: dict[Any, int] = {}
        self._objects: dict[int, int] = {}

    def number_of(self, value: Any) -> int:
        """The number of a part. The document has to stay as it is meanwhile: an object is looked at once."""
        if not isinstance(value, dict | list):
            return self._numbered((type(value), value), (), len(json.dumps(value)))
        if id(value) not in self._objects:
            self._objects[id(value)] = self._of_several(value)
        return self._objects[id(value)]

    def _of_several(self, value: dict[str, Any] | list[Any]) -> int:
        if isinstance(value, list):
            inside = tuple(map(self.number_of, value))
            return self._numbered((list, inside), inside, sum(self.letters[one] + 2 for one in inside))
        pairs = sorted((key, self.number_of(one)) for key, one in value.items())
        inside = tuple(number for _, number in pairs)
        letters = sum(len(json.dumps(key)) + self.letters[number] + 4 for key, number in pairs)
        return self._numbered((dict, tuple(pairs)), inside, letters)

    def _numbered(self, key: Any, inside: tuple[int, ...], letters: int) -> int:
        if key not in self._known:
            self._known[key] = len(self.inside)
            self.inside.append(inside)
            self.letters.append(letters)
        return self._known[key]
