"""All cases, and the index, are as the published JSON schemas say; what is not, is refused."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from kspec.conformance.wire.cases.document import FORMAT
from kspec.conformance.wire.cases.kept import whole_suite
from tests.conformance.wire.targets import documents
from tests.limits.marks import is_night
from tests.places import REPOSITORY

pytestmark = pytest.mark.slow

FOLDER = REPOSITORY / "conformance" / "schemas"


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


CASE, INDEX = validator("level-0-case.json"), validator("level-0-index.json")


BY_DAY = 10
"""By day each tenth case is validated; a validation takes as long as a step on a broker."""


def test_every_case_is_as_its_schema_says() -> None:
    for document in documents()[:: 1 if is_night() else BY_DAY]:
        CASE.validate(document)
    assert documents()[0]["format"] == FORMAT


def test_the_index_is_as_its_schema_says() -> None:
    INDEX.validate(whole_suite().contents)


def without_versions(case: Any) -> None:
    del case["steps"][0]["expect"][0]["versions"]


def with_half_a_byte(case: Any) -> None:
    next(iter(case["steps"][0]["bytes"].values()))[0] += "0"


def with_an_unknown_ending(case: Any) -> None:
    case["steps"][0]["ending"] = "perhaps"


def with_two_demands(case: Any) -> None:
    case["steps"][0]["expect"][0] |= {"at_least": 3}


def with_a_liberty_without_a_reason(case: Any) -> None:
    case["steps"][0]["expect"][0] |= {"free": {"none_of": [0]}}


def of_the_format_before(case: Any) -> None:
    case["format"] = FORMAT - 1


@pytest.mark.parametrize(
    "spoil",
    [
        without_versions,
        with_half_a_byte,
        with_an_unknown_ending,
        with_two_demands,
        with_a_liberty_without_a_reason,
        of_the_format_before,
    ],
)
def test_what_is_no_case_is_refused(spoil: Callable[[Any], None]) -> None:
    case = copy.deepcopy(documents("reading/fetch.end/nothing")[0])
    CASE.validate(case)
    spoil(case)
    with pytest.raises(ValidationError):
        CASE.validate(case)


def test_an_index_without_its_times_is_refused() -> None:
    index = {name: value for name, value in whole_suite().contents.items() if name != "timing"}
    with pytest.raises(ValidationError, match="timing"):
        INDEX.validate(index)
