"""Results of a case."""

from enum import Enum
from typing import Any, NamedTuple

from kspec.conformance.wire.cases.suite import Json


class Status(Enum):
    """A case's status.

    `ENDED`: the target does not answer any more. `UNLIKE`: Apache Kafka answers otherwise, and the protocol leaves it free.
    """

    PASS = "pass"
    FAIL = "fail"
    ENDED = "stops answering"
    UNLIKE = "unlike Kafka"
    NOT_SUPPORTED = "not supported"
    NOT_APPLICABLE = "not applicable"
    ALLOWED = "allowed"


WRONG = (Status.FAIL, Status.ENDED)
"""Statuses of a broker that is wrong."""


class ExchangeReport(NamedTuple):
    """One exchange as it happened: fields and bytes in hex, and what of the answer is not as expected.

    `liberties`: what of it is unlike Apache Kafka, each with the sentence that leaves it free.
    """

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
    liberties: tuple[str, ...] = ()


class Result(NamedTuple):
    """A case's status with its reason, its exchanges, and how long it took (s).

    `left_out`: the APIs of looks that the target does not offer, so that the case has done without.
    """

    case: Json
    status: Status
    reason: str
    told: tuple[ExchangeReport, ...]
    seconds: float
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the case."""
        return str(self.case["name"])

    @property
    def case_name(self) -> str:
        """The name of the case, also where it is run in chosen versions of its requests (see `in_versions`)."""
        return str(self.case.get("case", self.name))

    def ended(self, why: str) -> "Result":
        """The same, where the target answers no more."""
        reason = f"{self.reason}; {why}" if self.reason else why
        return self._replace(status=Status.ENDED, reason=reason)
