"""Values are read back as they were, and text that describes none is refused."""

import dataclasses
from enum import Enum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.model import TransactionalClient
from kspec.model_check.engines import reference
from kspec.model_check.engines.compiled.written_values import UnknownValueError, value_as_text, value_from_text
from kspec.spec.log.record_log import RecordLog
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, Error, LeaderAndIsr, Record
from tests.model_check.engines.comparison import SMALL_MODELS, model_of


class Pair(NamedTuple):
    left: Any
    right: Any


class Colour(Enum):
    RED = "r"
    GREEN = "g"


@dataclasses.dataclass(frozen=True, slots=True)
class Box:
    content: Any
    label: str = ""


@dataclasses.dataclass(frozen=True)
class CountedValue:
    content: int
    twice: int = dataclasses.field(init=False, default=0)


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.sampled_from(Colour),
    st.sampled_from(Error),
    st.builds(TransactionalClient, st.integers()),
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.builds(Box, inner, st.text(max_size=3)),
    ),
    max_leaves=12,
)


def kinds_of(value: Any) -> Any:
    """The types of a value and of what it holds: `True == 1` and `Pair(1, 2) == (1, 2)`, but they are not the same."""
    if isinstance(value, frozenset):
        return frozenset, frozenset((member, kinds_of(member)) for member in value)
    if isinstance(value, tuple):
        return type(value), tuple(kinds_of(member) for member in value)
    return (Box, kinds_of(value.content)) if isinstance(value, Box) else type(value)


@given(VALUES)
def test_values_are_read_back(value: Any) -> None:
    text = value_as_text(value)
    assert "\n" not in text
    read = value_from_text(text)
    assert read == value
    assert kinds_of(read) == kinds_of(value)


@pytest.mark.parametrize(("name", "parameters"), SMALL_MODELS[-4:])
def test_states_are_read_back(name: str, parameters: dict[str, Any]) -> None:
    model = model_of(name, parameters)
    found = reference.explore(model, model.properties, Limits(stop_at_first=False))
    states = [step.state for verdict in found.verdicts for step in verdict.trace or ()]
    assert states
    for state in states:
        assert value_from_text(value_as_text(state)) == state


def test_what_is_written_can_be_read_by_people() -> None:
    log = RecordLog((Record(7, Epoch(2)),))
    assert value_as_text(log) == '{"spec.log.record_log:RecordLog":[[{"spec.values:Record":[7,2]}],0,-1]}'
    assert (
        value_as_text(LeaderAndIsr(NO_LEADER, Epoch(1), frozenset({BrokerId(3)})))
        == '{"spec.values:LeaderAndIsr":[-1,1,{"set":[3]}]}'
    )
    assert value_as_text(Colour.RED) == '{"tests.model_check.engines.compiled.test_written_values:Colour":"RED"}'


@pytest.mark.parametrize("value", [1.5, [1], {1: 2}, {1}, object(), len, Record, CountedValue(1), (1, bytearray(b"x"))])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(UnknownValueError):
        value_as_text(value)


def test_a_class_that_could_not_be_found_again_is_refused() -> None:
    class HiddenField(NamedTuple):
        content: int

    with pytest.raises(UnknownValueError, match="HiddenField"):
        value_as_text(HiddenField(1))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1,",
        '{"a":1,"b":2}',
        '{"nowhere:Nothing":[]}',
        '{"spec.values:Nothing":[]}',
        '{"os:system":["true"]}',
        '{"builtins:eval":["1"]}',
        '{"subprocess:Popen":["true"]}',
        '{"pathlib:Path":["x"]}',
        '{"kspec.cli.main:Path":["x"]}',
        '{"spec.values:Record.__class__":["x"]}',
        '{"spec.values:Record":[1]}',
        '{"spec.values:Error":"NO_SUCH_ERROR"}',
        '{"set":5}',
        '{"bytes":"xy"}',
        '{"bytes":5}',
        '{"builtins:int":5}',
        '{"builtins:bool":1}',
        '{"model_check.core.model:Client":"five"}',
        '{"model_check.core.model:Client":[5]}',
        '{"spec.values:Record":5}',
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(UnknownValueError):
        value_from_text(text)
