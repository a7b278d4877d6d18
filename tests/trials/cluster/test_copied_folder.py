"""A broker's folder that was copied for another one: nobody may be two replicas at once."""

import re
import shutil
from pathlib import Path

import pytest

from tests.trials.cluster.running import RunningCluster, kspec, until


@pytest.mark.slow
def test_a_copied_folder_is_refused_whatever_was_changed_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with RunningCluster(folder, brokers=2, combined=False) as cluster:
        port = cluster.port
    metas = {node: folder / node / "data" / "meta.properties" for node in ("1", "2")}
    own = metas["2"].read_text(encoding="utf-8")
    shutil.copy(metas["1"], metas["2"])
    done = kspec("cluster", "--log-dir", str(folder), "--brokers", "2", "--plain", "--port", str(port))
    assert done.returncode == 2
    assert f"{folder / '2' / 'data'} belongs to node.id=1, not to 2" in done.stderr
    found = re.search(r"directory\.id=(\S+)", metas["1"].read_text(encoding="utf-8"))
    assert found is not None
    metas["2"].write_text(re.sub(r"(?<=directory\.id=)\S+", found[1], own), encoding="utf-8")
    cluster = RunningCluster(folder, brokers=2, combined=False)
    cluster.port = port
    try:
        cluster.start(wait=False)
        line = "broker 2 is not registered: INVALID_REGISTRATION, the directory.id in its log directory's meta.properties"
        until(lambda: any(line in one.read_text(errors="replace") for one in folder.rglob("*") if is_log(one)))
        told = "".join(one.read_text(errors="replace") for one in folder.rglob("*") if is_log(one))
        assert told.count(line) == 1
    finally:
        if cluster.runs():
            cluster.end()


def is_log(path: Path) -> bool:
    """Whether a file may be what a node has said."""
    return path.is_file() and "data" not in path.parts
