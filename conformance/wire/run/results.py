"""What came of a case."""

from enum import Enum
from typing import Any, NamedTuple

from conformance.wire.run.rendering import Json


class Status(Enum):
    """How a case went."""

    PASS = "pass"
    FAIL = "fail"
    NOT_SUPPORTED = "not supported"
    NOT_APPLICABLE = "not applicable"
    ALLOWED = "allowed"


class Told(NamedTuple):
    """One exchange as it happened: fields and bytes in hex, and what of the answer is not as expected."""

    client: str
    api: str
    version: int
    words: str
    request: Any
    request_hex: str
    answer: Any
    answer_hex: str
    expected: str
    differences: tuple[str, ...] = ()


class Result(NamedTuple):
    """A case's status with its reason, its exchanges, and how long it took."""

    case: Json
    status: Status
    reason: str
    told: tuple[Told, ...]
    seconds: float

    @property
    def name(self) -> str:
        """The name of the case."""
        return str(self.case["name"])

    @property
    def case_name(self) -> str:
        """The name of the case, also where it is run in chosen versions of its requests (see `in_versions`)."""
        return str(self.case.get("case", self.name))

    def ended_target(self) -> "Result":
        """The same, where the target has ended: what differs says so."""
        *before, last = self.told
        ended = last._replace(differences=(*last.differences, "and the broker ends"))
        return self._replace(status=Status.FAIL, told=(*before, ended))
