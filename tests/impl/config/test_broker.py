"""The settings of a broker have the types that Apache Kafka 4.4.0 gives them."""

import ast
from collections.abc import Iterator

import pytest

from kspec.impl.config.broker import SETTINGS, BrokerConfig
from kspec.impl.config.controller import CONTROLLER_SETTINGS
from kspec.impl.config.kafka import kafka_settings
from tests.places import REPOSITORY

OURS = {"cluster.id", "metrics.listener"}
"""Settings of this broker alone."""

KINDS = {"class": "string"}

ASKED_BY = {"int": "number", "long": "number", "short": "number", "boolean": "flag", "string": "word", "list": "words"}
"""The method of `SettingValues` for each type."""


def test_types_are_kafkas() -> None:
    kafkas = {name: KINDS.get(one.kind, one.kind) for name, one in kafka_settings().items()}
    assert {name: setting.kind for name, setting in SETTINGS.items()} == {
        name: "string" if name in OURS else kafkas[name] for name in SETTINGS
    }


def test_no_setting_that_is_given_is_a_secret() -> None:
    """An error about a setting that is given shows its value."""
    assert [name for name in SETTINGS if name in kafka_settings() and kafka_settings()[name].kind == "password"] == []


def questions() -> Iterator[tuple[str, str]]:
    """The settings that the broker and its tools ask for, and the method by which they do."""
    for room in ("impl", "trials", "kspec/cli"):
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            for one in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match one:
                    case ast.Call(ast.Attribute(attr=method), [ast.Constant(str() as name)]) if name in CONTROLLER_SETTINGS:
                        if method in ASKED_BY.values():
                            yield name, method


def test_each_setting_is_asked_for_by_its_kind() -> None:
    """`SettingValues` refuses another kind where it is asked; this looks at all places, run or not."""
    asked = set(questions())
    assert {(name, method) for name, method in asked if ASKED_BY[CONTROLLER_SETTINGS[name].kind] != method} == set()
    assert {
        name for name, method in asked if method in ("number", "flag") and CONTROLLER_SETTINGS[name].default is None
    } == set()
    assert len(asked) > 50, "hardly a file has been read"


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("log.dirs", "number"),
        ("auto.create.topics.enable", "number"),
        ("num.partitions", "flag"),
        ("num.partitions", "words"),
    ],
)
def test_a_setting_of_another_kind_is_a_defect(name: str, method: str) -> None:
    with pytest.raises(AssertionError, match=name):
        getattr(BrokerConfig({}), method)(name)


def test_a_list_that_is_not_given_is_empty() -> None:
    assert BrokerConfig({}).words("log.dirs") == ()
    assert BrokerConfig({}).word("broker.rack") is None
