"""The controller as a process: start and stop, kills, what it refuses to be, how quick it is."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from kspec.impl.metadata.files import FOLDER
from kspec.impl.metadata.log import MetadataLog
from kspec.impl.storage import RealDisk
from kspec.impl.wire.values import Message
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from tests.impl.broker.process import COMMAND
from tests.impl.controller.process import NODE, ControllerProcess, MemberProcess
from tests.impl.controller.requests import METADATA_TOPIC
from tests.limits.turns import Turns
from tests.times import at_ms
from tests.trials.cluster.running import until

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("KSPEC_KILLS", "5"))
AFTER_MS = (5, 400)
"""The time of the kill (ms), counted from the first requests."""

QUICK_S = 2.0
MANY = 1_000


def test_it_serves_stops_in_order_and_goes_on(tmp_path: Path) -> None:
    with ControllerProcess(tmp_path / "controller") as controller:
        with MemberProcess(controller.port) as broker:
            broker.join()
            assert broker.create_topic("t", 3).error_code == 0
            before = broker.fetch_metadata(epoch=1).high_watermark
        assert controller.stop() == 0
        controller.start()
        with MemberProcess(controller.port) as broker:
            answer = broker.fetch_metadata(before, epoch=2, last_epoch=1)
            assert (answer.error_code, answer.high_watermark) == (0, before + 1)
            assert broker.create_topic("t").error_code != 0
            broker.broker_epoch = 5
            assert not broker.heartbeat().is_fenced


def test_a_weakened_rule_decides_and_is_replayed(tmp_path: Path) -> None:
    """Leaving the block runs the trace through the weakened rules again."""
    with (
        ControllerProcess(tmp_path / "controller", "--mutant", CONTROLLER_MUTANTS[0].name) as controller,
        MemberProcess(controller.port) as broker,
    ):
        broker.join()
        assert broker.create_topic("t").error_code == 0


def test_a_fetch_that_waits_is_forgotten_with_its_connection(tmp_path: Path) -> None:
    with ControllerProcess(tmp_path / "controller") as controller:
        waiting, broker = MemberProcess(controller.port), MemberProcess(controller.port)
        end = broker.fetch_metadata(epoch=1).high_watermark
        waiting.send("Fetch", 18, fetch_that_waits(end))
        waiting.close()
        with broker:
            broker.join()
            assert broker.fetch_metadata(epoch=1).high_watermark == end + 2


def fetch_that_waits(end: int) -> Message:
    partition = Message(partition=0, current_leader_epoch=1, fetch_offset=end, last_fetched_epoch=1, high_watermark=end)
    return Message(max_wait_ms=60_000, topics=[Message(topic_id=METADATA_TOPIC, partitions=[partition])])


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["node.id=5"], "node.id must be 100"),
        (["controller.quorum.voters="], "controller.quorum.voters must name the controllers"),
        (["controller.quorum.voters=101@h:1,102@h:2"], "node.id must be 101 or 102"),
        (["controller.quorum.voters=100@h:1,100@h:2"], "controller.quorum.voters must name each controller once"),
        (["controller.quorum.voters=100@h:1,101@h:1"], "controller.quorum.voters must name each address once"),
        (["controller.quorum.voters=100@h"], "ID@HOST:PORT"),
        (["controller.quorum.voters=100@:1"], "ID@HOST:PORT"),
        (["controller.quorum.voters=100@h:65536"], "ID@HOST:PORT"),
        (["controller.quorum.voters=2147483648@h:1"], "ID@HOST:PORT"),
        (["controller.quorum.voters=100@h:1"], "listeners must have port 1"),
        (["listeners=PLAINTEXT://127.0.0.1:0"], "listeners must be CONTROLLER://HOST:PORT"),
        (["controller.listener.names=A,B"], "controller.listener.names must be one name"),
        (["listeners=CONTROLLER://127.0.0.1:x"], "listeners must have the form"),
        (["log.dirs=a,b"], "log.dirs must name one folder"),
        (["broker.session.timeout.ms=0"], "broker.session.timeout.ms must be a number from 1"),
    ],
)
def test_settings_that_cannot_be(overrides: Sequence[str], words: str, tmp_path: Path) -> None:
    process = ControllerProcess(tmp_path / "controller")
    folder = [] if any(one.startswith("log.dirs") for one in overrides) else [f"log.dirs={tmp_path / 'controller'}"]
    given = [part for one in (*process.settings(), *folder, *overrides) for part in ("--override", one)]
    command = [sys.executable, "-c", COMMAND, "broker", *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert words in line


class ControllerAmongNames(ControllerProcess):
    """A controller whose peers have names that nobody knows, as before their machines are there."""

    def settings(self) -> list[str]:
        own = f"{NODE}@127.0.0.1:{self.port}"
        return [*super().settings(), f"controller.quorum.voters={own},101@nobody.invalid:1,102@no..name:1"]


def test_names_of_peers_that_are_not_known_end_nobody(tmp_path: Path) -> None:
    with ControllerAmongNames(tmp_path / "controller") as controller:
        until(lambda: controller.text_of_log().count("is not known") >= 2)
        assert controller.stop() == 0


def test_two_do_not_share_a_folder(tmp_path: Path) -> None:
    with ControllerProcess(tmp_path / "controller", traced=False):
        other = ControllerProcess(tmp_path / "controller", traced=False)
        with pytest.raises(AssertionError, match="is in use"):
            other.start()


# ---- kills


def works(port: int, done: list[str], stop: threading.Event, first: int) -> None:
    """Create topics and register brokers until the controller is gone; `done` has what was answered."""
    try:
        with MemberProcess(port, timeout=20) as broker:
            broker.join(first)
            done.append(f"broker {first}")
            number = 0
            turns = Turns()
            while not stop.is_set():
                turns.go()
                number += 1
                name = f"t-{first}-{number}"
                if broker.create_topic(name, 3).error_code == 0:
                    done.append(f"topic {name}")
    except (ConnectionError, OSError):
        pass


def test_what_was_answered_survives_kills(tmp_path: Path) -> None:
    """Three brokers register and create topics while the process is killed again and again. The log has it all."""
    chance = random.Random(1)
    controller = ControllerProcess(
        tmp_path / "controller", overrides=["metadata.log.max.record.bytes.between.snapshots=20000"]
    )
    answered: list[str] = []
    for round_number in range(KILLS):
        controller.start()
        stop = threading.Event()
        ids = [10 * round_number + one for one in (1, 2, 3)]
        workers = [threading.Thread(target=works, args=(controller.port, answered, stop, one)) for one in ids]
        for worker in workers:
            worker.start()
        time.sleep(chance.randint(*AFTER_MS) / 1000)
        controller.kill()
        stop.set()
        for worker in workers:
            worker.join(30)
        log = MetadataLog(RealDisk(), controller.folder, at_ms(0))
        image = log.image()
        log.close()
        known = {f"broker {one.broker}" for one in image.spec.brokers} | {f"topic {name}" for name in image.topics}
        assert set(answered) <= known
        assert all(len(topic.partitions) == 3 for topic in image.topics.values())
    assert len(answered) > KILLS
    assert (controller.folder / FOLDER).is_dir()


def test_ctrl_c_stops_it(tmp_path: Path) -> None:
    controller = ControllerProcess(tmp_path / "controller", traced=False).start()
    assert controller.process is not None
    controller.process.send_signal(signal.SIGINT)
    assert controller.process.wait(30) == 0
    controller.stop()


# ---- many partitions


def test_a_thousand_partitions_are_created_and_get_other_leaders_quickly(tmp_path: Path) -> None:
    """Kafka: 1,000 partitions are one request, and a broker's end is one batch."""
    overrides = ["broker.session.timeout.ms=1000"]
    controller = ControllerProcess(tmp_path / "controller", overrides=overrides, traced=False)
    with controller, MemberProcess(controller.port) as one, MemberProcess(controller.port) as other:
        one.join(1)
        other.join(2)
        began = time.monotonic()
        assert one.create_topic("many", MANY, 2).error_code == 0
        created = time.monotonic() - began
        one.heartbeat()
        other.heartbeat()
        end = other.fetch_metadata(epoch=1).high_watermark
        began = time.monotonic()
        high_watermark = end
        turns = Turns()
        while high_watermark == end:
            turns.go()
            other.heartbeat()
            high_watermark = other.fetch_metadata(end, epoch=1, last_epoch=1, wait_ms=200).high_watermark
        fenced = time.monotonic() - began
        assert high_watermark == end + MANY + 1
    print(f"created in {created:.2f} s; elected in {fenced:.2f} s, of which {1.0} s is the session")
    assert created < QUICK_S
    assert fenced < QUICK_S + 1.0
