"""Addresses: they come back as they were, and one that cannot be read says why."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.model_check.explorer.address import Address, AddressStep, parameters_from, parameters_to_write, parse
from kspec.model_check.models import MODELS
from tests.model_check.explorer.asking import JsonExplorer

NAMES = st.text(min_size=1, max_size=12)
WHOLE = st.integers(-1, 999_999_999)
ARGUMENTS = WHOLE | st.lists(WHOLE, max_size=4).map(tuple)
STEPS = st.builds(
    AddressStep,
    NAMES,
    st.dictionaries(NAMES, ARGUMENTS, max_size=3).map(lambda args: tuple(args.items())),
    st.integers(1, 9),
)
DIGESTS = st.text("0123456789abcdef", min_size=8, max_size=8) | st.just("")


@given(model=NAMES, steps=st.lists(STEPS, max_size=5).map(tuple), digest=DIGESTS)
def test_an_address_comes_back_as_it_was(model: str, steps: tuple[AddressStep, ...], digest: str) -> None:
    text = Address(model, {}, steps, digest).text()
    assert re.fullmatch(r"[A-Za-z0-9._~%-]+", text)
    assert parse(text) == (model, {}, steps, digest)


def _values(name: str) -> st.SearchStrategy[dict[str, Any]]:
    values: dict[str, st.SearchStrategy[Any]] = {}
    for parameter in MODELS[name].parameters:
        if parameter.many:
            values[parameter.name] = st.lists(st.sampled_from(parameter.choices), unique=True).map(tuple)
        elif parameter.choices:
            single = st.sampled_from(parameter.choices)
            several = st.lists(single, min_size=1, max_size=3).map(",".join) if parameter.listed else single
            values[parameter.name] = several if parameter.default is not None else st.none() | several
        elif parameter.minimum is None:
            values[parameter.name] = st.booleans()
        else:
            values[parameter.name] = st.integers(parameter.minimum, parameter.maximum)
    return st.fixed_dictionaries(values)


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_parameters_come_back_as_they_were(name: str, data: st.DataObject) -> None:
    entry, parameters = MODELS[name], data.draw(_values(name))
    text = Address(name, parameters_to_write(entry, parameters)).text()
    model, written, steps, digest = parse(text)
    found = parameters_from(entry, written)
    usual = {parameter.name: parameter.default for parameter in entry.parameters}
    assert (model, steps, digest) == (name, (), "")
    assert {**usual, **entry.defaults(found), **found} == parameters


@given(st.text(alphabet="kafip-101~_.%47Z"))
def test_whatever_is_opened_is_a_view_or_one_sentence(text: str) -> None:
    answer = JsonExplorer().ask("open", address=text)
    assert answer["answer"] in ("view", "error")
    assert "\n" not in answer.get("words", "")


@pytest.mark.parametrize(
    ("address", "kind", "words"),
    [
        ("", "bad-address", "this address cannot be read: it does not begin with the name of a model"),
        ("kafka~brokers=2", "bad-address", "'=' at position 14 is in no address; letters, digits and -._~% are"),
        ("kafka%zz", "bad-address", "'%' at position 6"),
        ("kafka~brokers", "bad-address", "'brokers' is no parameter, which is written NAME.VALUE"),
        ("kafka~brokers.2~brokers.3", "bad-address", "parameter brokers stands in it twice"),
        ("kafka~brokers.x", "bad-address", "parameter brokers is a whole number, not 'x'"),
        ("kafka~unclean.1", "bad-address", "parameter unclean is on or off, not '1'"),
        ("kafka~broker.2", "bad-address", "model kafka has no parameter 'broker'; did you mean brokers"),
        ("kafka~release.9.9", "bad-parameter", "--release 9.9: "),
        ("kafca", "unknown-model", "there is no model 'kafca'; did you mean kafka"),
        ("kafka~~Produce_leader", "bad-address", "step 2: 'leader' is no argument, which is written NAME.VALUE"),
        ("kafka~~Produce_leader.one", "bad-address", "step 2: 'one' is no whole number"),
        ("kafka~~Produce_leader.1_leader.2", "bad-address", "step 2: argument leader stands in it twice"),
        ("kafka~~~~xyz", "bad-address", "the digest 'xyz' at its end is not 8 hexadecimal digits"),
        ("kafka~~a~~b~~c", "bad-address", "it has 4 parts between ~~"),
    ],
)
def test_an_address_that_cannot_be_read_says_why(address: str, kind: str, words: str) -> None:
    answer = JsonExplorer().ask("open", address=address)
    assert (answer["answer"], answer["kind"]) == ("error", kind)
    assert words in answer["words"]


def test_a_link_says_what_has_changed() -> None:
    """A step that is gone, one that is no longer possible, an end that is another: the run is open as far as it goes."""
    page = JsonExplorer()
    first = "kip-101~replicas.2~~ControllerElectLeader_replica.1"
    view = page.view("open", address=f"{first}~Renamed_replica.1~BecomeLeader_leader.1_epoch.0")
    assert (view["position"], view["changed"]["at"], view["changed"]["kind"]) == (2, 3, "unknown-action")
    view = page.view("open", address=f"{first}~BecomeLeader_leader.2_epoch.0")
    assert (view["position"], view["changed"]["at"], view["changed"]["kind"]) == (2, 3, "not-enabled")
    assert view["changed"]["forbidden_by"]["source"] == "is_leader"
    view = page.view("open", address=f"{first}~~00000000")
    assert view["position"] == view["changed"]["at"] == 2
    assert "not the state that the address was made for" in view["changed"]["words"]
    assert page.view("open", address=view["address"])["changed"] is None
    assert page.view("open", address=first)["changed"] is None


def test_an_address_names_every_bound_that_is_not_off() -> None:
    """So other defaults in a later version do not change what it means."""
    view = JsonExplorer().view("start", model="kafka")
    for parameter in ("release", "brokers", "values", "min-isr", "acks", "elections"):
        assert f"~{parameter}." in view["address"]
    assert "fencings" not in view["address"]
