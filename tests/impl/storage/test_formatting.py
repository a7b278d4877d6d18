"""Formatting of a folder, and refusals: `kspec storage`, a broker by `--config`, and a cluster that was there before."""

import re
import shutil
from pathlib import Path

import pytest

from tests.trials.cluster.running import RunningCluster, free_ports, kspec

pytestmark = pytest.mark.slow

CLUSTER = "a3NwZWMtc3RvcmFnZS10ZXN0cw"


def written(folder: Path, *lines: str, roles: str = "broker,controller") -> Path:
    """A `server.properties` of node 1, whose folder for logs is `data` beside it."""
    port = free_ports(2)
    text = [
        f"process.roles={roles}",
        "node.id=1",
        f"listeners=PLAINTEXT://127.0.0.1:{port}",
        f"controller.quorum.voters=1@127.0.0.1:{port + 1}",
        f"log.dirs={folder / 'data'}",
        *lines,
    ]
    file = folder / "server.properties"
    file.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return file


def format_(file: Path, *more: str, cluster: str = CLUSTER) -> tuple[int, str]:
    """The result of `kspec storage format`: its status, and its one line."""
    done = kspec("storage", "format", "-c", str(file), "-t", cluster, *more)
    (line,) = (done.stdout + done.stderr).splitlines()
    return done.returncode, line


def test_a_folder_is_formatted_once(tmp_path: Path) -> None:
    file, data = written(tmp_path), tmp_path / "data"
    assert format_(file) == (0, f"Formatted {data} for node 1 of cluster {CLUSTER}.")
    meta = (data / "meta.properties").read_text(encoding="utf-8")
    assert re.fullmatch(rf"version=1\ncluster\.id={CLUSTER}\nnode\.id=1\ndirectory\.id=[\w-]{{22}}\n", meta)
    assert format_(file) == (2, f"kspec: {data} is already formatted; --ignore-formatted leaves it as it is")
    assert format_(file, "--ignore-formatted") == (0, "All of the log directories are already formatted.")
    status, line = format_(file, "-g", cluster="another")
    assert (status, line) == (2, f"kspec: {data} belongs to cluster.id={CLUSTER}, not to another: see its meta.properties")
    file.write_text(file.read_text(encoding="utf-8").replace("node.id=1", "node.id=2"), encoding="utf-8")
    assert format_(file, "-g") == (2, f"kspec: {data} belongs to node.id=1, not to 2: see its meta.properties")
    assert (data / "meta.properties").read_text(encoding="utf-8") == meta


def test_what_cannot_be_formatted(tmp_path: Path) -> None:
    file, data = written(tmp_path, f"cluster.id={CLUSTER}"), tmp_path / "data"
    assert format_(file, cluster="another")[1].endswith(f"says cluster.id={CLUSTER}, and --cluster-id is another")
    assert "--cluster-id is an id such as" in format_(file, cluster=" ")[1]
    assert format_(file, "-r", "0.1")[1].startswith("kspec: there is no release '0.1'; releases: ")
    said = "kspec: --standalone, --no-initial-controllers and --initial-controllers exclude each other"
    assert format_(file, "-s", "-N")[1] == said
    assert format_(tmp_path / "none")[0] == 2
    data.write_text("a file", encoding="utf-8")
    assert format_(file)[0] == 2
    data.unlink()
    (data / "topic-0").mkdir(parents=True)
    assert format_(file) == (2, f"kspec: {data} has no meta.properties, and is not empty: it has topic-0")
    assert not (data / "meta.properties").exists()


def test_a_folder_is_told_of(tmp_path: Path) -> None:
    file, data = written(tmp_path), tmp_path / "data"

    def info() -> tuple[int, str]:
        done = kspec("storage", "info", "--config", str(file))
        return done.returncode, done.stdout

    assert info() == (1, f"Found problem:\n  {data} does not exist.\n\n")
    data.mkdir()
    assert info() == (1, f"Found log directory:\n  {data}\n\nFound problem:\n  {data} is not formatted.\n\n")
    format_(file)
    status, text = info()
    assert status == 0
    assert re.search(rf"Found metadata: {{cluster\.id={CLUSTER}, directory\.id=[\w-]{{22}}, node\.id=1, version=1}}", text)
    (data / "meta.properties").write_bytes(b"\xff")
    assert info()[0] == 1


def test_an_id_is_made() -> None:
    found = kspec("storage", "random-uuid").stdout.strip()
    assert re.fullmatch(r"[\w][\w-]{21}", found)
    assert kspec("storage", "random-uuid").stdout.strip() != found


@pytest.mark.parametrize("roles", ["broker,controller", "broker"])
def test_a_broker_that_is_started_by_a_file_does_not_format(roles: str, tmp_path: Path) -> None:
    file, data = written(tmp_path, f"cluster.id={CLUSTER}", roles=roles), tmp_path / "data"
    for emptied in (False, True):
        if emptied:
            data.mkdir()
        done = kspec("broker", "--config", str(file))
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith(f"kspec: {data} is not formatted: it has no meta.properties;")
        assert not (data / "meta.properties").exists()


def test_a_controller_that_is_started_by_a_file_does_not_format(tmp_path: Path) -> None:
    lines = f"cluster.id={CLUSTER}", "controller.listener.names=CONTROLLER"
    file = written(tmp_path, *lines, roles="controller")
    text = file.read_text(encoding="utf-8").replace("PLAINTEXT://", "CONTROLLER://")
    port = re.search(r"listeners=CONTROLLER://127.0.0.1:(\d+)", text)
    assert port is not None
    file.write_text(re.sub(r"voters=.*", f"voters=1@127.0.0.1:{port[1]}", text), encoding="utf-8")
    done = kspec("broker", "--config", str(file))
    assert done.returncode == 2
    assert "is not formatted" in done.stderr.splitlines()[-1]


def test_a_cluster_does_not_format_again_who_was_in_it(tmp_path: Path) -> None:
    """The refusal does not depend on what was deleted: the file alone, all in the folder for logs, or the node's folder."""
    folder = tmp_path / "cluster"
    with RunningCluster(folder) as cluster:
        port = cluster.port
    node = folder / "1"
    kept = shutil.copytree(node, tmp_path / "kept")
    command = "cluster", "--log-dir", str(folder), "--brokers", "1", "--combined", "--plain", "--port", str(port)
    for gone in ("data/meta.properties", "data", "."):
        shutil.rmtree(node, ignore_errors=True)
        shutil.copytree(kept, node)
        (node / gone).unlink() if (node / gone).is_file() else shutil.rmtree(node / gone)
        refused = kspec(*command)
        assert refused.returncode == 2, gone
        (line,) = refused.stderr.splitlines()
        assert line.startswith(f"kspec: broker 1 was in this cluster before, and {node / 'data'} is not formatted"), gone
        assert not (node / "data" / "meta.properties").exists(), gone
