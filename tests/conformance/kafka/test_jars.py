"""Jars that are not there are one clear line."""

from pathlib import Path

import pytest

from kspec.conformance.kafka.jars import POM, TOOLS, Jars, KafkaMissingError, cache_folder, fetch_command, find_jars, java


def test_what_is_no_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(KafkaMissingError, match=r"'4' is no release of Kafka; one looks like 4\.4\.0"):
        find_jars("4")
    with pytest.raises(KafkaMissingError, match="are not there; fetch them: mvn"):
        find_jars("4.4.0", fetch=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KafkaMissingError, match="neither is Maven"):
        find_jars("4.4.0")


def test_a_class_path_is_kept_as_long_as_its_jars_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jar = tmp_path / "kafka-clients-4.4.0.jar"
    jar.write_bytes(b"")
    cache_folder().mkdir()
    (cache_folder() / "class-path-4.4.0.txt").write_text(f"{jar}\n")
    found = find_jars("4.4.0", fetch=False)
    assert found == Jars("4.4.0", (jar,))
    assert found.named("kafka-clients") == jar
    with pytest.raises(KafkaMissingError, match=r"has no kafka-raft-4\.4\.0\.jar"):
        found.named("kafka-raft")
    jar.unlink()
    with pytest.raises(KafkaMissingError, match="fetch them"):
        find_jars("4.4.0", fetch=False)


def test_java_is_asked_for_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(KafkaMissingError, match="there is no Java"):
        java()


def test_the_tools_have_a_class_path_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jar = tmp_path / "kafka-tools-4.3.1.jar"
    jar.write_bytes(b"")
    cache_folder().mkdir()
    (cache_folder() / "tools-4.3.1.txt").write_text(f"{jar}\n")
    assert find_jars("4.3.1", fetch=False, pom=TOOLS).class_path == (jar,)
    with pytest.raises(KafkaMissingError, match=r"fetch them: mvn .*pom\.xml"):
        find_jars("4.3.1", fetch=False)


@pytest.mark.parametrize("pom", [POM, TOOLS])
def test_the_command_names_a_file_that_is_there(pom: Path) -> None:
    command = fetch_command("3.9.2", pom)
    assert Path(command[command.index("-f") + 1]).exists()
    assert "-Dkafka.version=3.9.2" in command
