"""A suite of level 0: an index and its cases, also as lines of text.

The text has a line for the index and one for each case, which is read when it is asked for: most commands want a few.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

Json = dict[str, Any]


class SuiteContent(NamedTuple):
    """The content of `index.json`, and the cases as JSON; nobody changes them."""

    contents: Json
    documents: Sequence[Json]

    @property
    def title(self) -> str:
        """The version, and the beginning of the digest, by which people tell suites apart."""
        return f"suite {self.contents['suite']['version']} ({self.contents['suite']['digest'][:12]})"

    @property
    def names(self) -> list[str]:
        """The names of all cases."""
        return [one["name"] for one in self.contents["cases"]]

    def places(self, wanted: str) -> list[int]:
        """The places of the case with a name; if there is none, of those whose names begin so."""
        names = self.names
        return [names.index(wanted)] if wanted in names else [at for at, one in enumerate(names) if one.startswith(wanted)]

    def files(self) -> Iterable[tuple[str, Json]]:
        """The names of all files and what is in them, the index first."""
        yield "index.json", self.contents
        for entry, document in zip(self.contents["cases"], self.documents, strict=True):
            yield entry["file"], document

    def as_text(self) -> str:
        """The suite in lines."""
        return "\n".join(json.dumps(one, separators=(",", ":")) for one in (self.contents, *self.documents))


class DocumentLines(Sequence[Json]):
    """Cases in lines of JSON. Each is read once, when it is asked for."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._read: dict[int, Json] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Iterator[Json]:
        return map(self._document, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Json: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Json]: ...
    def __getitem__(self, place: int | slice) -> Json | Sequence[Json]:
        numbers = range(len(self))[place]
        return self._document(numbers) if isinstance(numbers, int) else [self._document(one) for one in numbers]

    def _document(self, number: int) -> Json:
        if number not in self._read:
            self._read[number] = json.loads(self._lines[number])
        return self._read[number]


def suite_of(text: str) -> SuiteContent:
    """The suite in a text."""
    contents, *lines = text.split("\n")
    return SuiteContent(json.loads(contents), DocumentLines(lines))


def digest_of(documents: Sequence[Json]) -> str:
    """The SHA-256 of cases: what a suite is told apart by."""
    return hashlib.sha256("\n".join(map(plain_json, documents)).encode()).hexdigest()


def plain_json(value: Any) -> str:
    """A value as JSON in one line, always the same."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
