"""Files in Java's properties format: what they say, and that what is wrong with them is told without their text."""

from pathlib import Path

import pytest

from kspec.impl.config.properties import ConfigError, parse_overrides, parse_properties, read_properties

READ: dict[str, dict[str, str]] = {
    "a.b=c": {"a.b": "c"},
    "  a.b = c  ": {"a.b": "c"},
    "a.b:c": {"a.b": "c"},
    "a.b c d": {"a.b": "c d"},
    "a.b\t=\tc": {"a.b": "c"},
    "a.b=": {"a.b": ""},
    "a.b==c": {"a.b": "=c"},
    "a.b=c=d:e": {"a.b": "c=d:e"},
    "# a.b=c\n! d=e\n\n  # f=g": {},
    "a.b=c,\\\n    d": {"a.b": "c,d"},
    "a.b=c\\\\\nd.e=f": {"a.b": "c\\", "d.e": "f"},
    "a.b=c\\\n# d": {"a.b": "c# d"},
    "a.b=C\\:\\\\D": {"a.b": "C:\\D"},
    "a.b=\\u0041\\tx": {"a.b": "A\tx"},
    "a.b=1\na.b=2": {"a.b": "2"},
    "a.b=c\r\nd.e=f\rg=h": {"a.b": "c", "d.e": "f", "g": "h"},
    "a.b=c\\": {"a.b": "c"},
    "a.b=c\x0bd\u2028e": {"a.b": "c\x0bd\u2028e"},
    "ssl.key.password hunter2": {"ssl.key.password": "hunter2"},
}


@pytest.mark.parametrize("text", READ)
def test_what_a_text_says(text: str) -> None:
    assert parse_properties(text) == READ[text]


WRONG: dict[str, int] = {
    "a.b=c\nhunter2": 2,
    "a.b=c\n=hunter2": 2,
    "MIIEvQIBADANhunter2+/x==": 1,
    "-----BEGIN hunter2": 1,
    "a.b=-----BEGIN\\\n hunter2\nMIIhunter2": 3,
    "a.b=\\uhunter2": 1,
    "hunter2.x.y": 1,
    "sasl\\.hunter2=3": 1,
    "a.b=c\n\n\n[hunter2]": 4,
    "{hunter2: 3}": 1,
}


@pytest.mark.parametrize("text", WRONG)
def test_a_line_that_is_no_setting_is_told_by_its_number_alone(text: str, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(text.encode())
    with pytest.raises(ConfigError) as refused:
        read_properties(file)
    assert f"line {WRONG[text]} of {file}" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"a=\xffhunter2")
    with pytest.raises(ConfigError, match=r"cannot read .*server.properties: it is not UTF-8$"):
        read_properties(file)
    with pytest.raises(ConfigError, match="Is a directory"):
        read_properties(tmp_path)


@pytest.mark.parametrize("text", ["ssl.key.password:hunter2", "hunter2", "=hunter2", "", "hunter2 hunter2=3"])
def test_an_override_of_another_form_is_told_by_its_place_alone(text: str) -> None:
    with pytest.raises(ConfigError, match=r"NAME=VALUE; number 2 has another$") as refused:
        parse_overrides(["a=b", text])
    assert "hunter2" not in str(refused.value)


def test_overrides() -> None:
    assert parse_overrides(["a.b = c=d ", "e="]) == {"a.b": "c=d", "e": ""}
