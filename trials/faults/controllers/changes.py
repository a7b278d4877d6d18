"""Clients that change the metadata, and what becomes of their changes.

A change is written down as a commit of a number: of a setting that grows, and of each topic that is created. So the judge of
committed offsets finds an acknowledged change that is lost, or an older one that came back.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random

from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from kspec.trials.cluster.asking import NOT_REACHED, ask_once
from kspec.trials.faults.load import Recorder
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    UNKNOWN,
    CommitOutcome,
    CommitStart,
    OffsetFetchOutcome,
    OffsetFetchStart,
)

CHANGES = "metadata/"
"""The beginning of the names under which changes stand in a history."""

CLIENT = "changes"
SETTING, BASE = "retention.ms", 1_000_000_000_000
"""The setting that is changed, and its value less the number of the change: so long that no record is old."""

PAUSE_S, TIMEOUT_S, LEARNED_S, TOPIC_ONE_IN = 0.25, 6.0, 30.0, 5
"""The pause between two changes, the longest wait for an answer and for a broker that learns of changes (s); the share of
changes that create a topic."""

TOPIC_KIND, SET = 2, 0
"""Kafka: `ConfigResource.Type.TOPIC`, `AlterConfigOp.OpType.SET`."""

NOTHING = -1
"""The number of a change that is not there."""

Place = tuple[str, int]


class MetadataChanges:
    """A client that changes a topic's setting, and creates topics, by any of the brokers."""

    def __init__(self, places: Sequence[Place], topic: str, recorder: Recorder, seed: int) -> None:
        self._places, self._topic, self._recorder = list(places), topic, recorder
        self._random = Random(f"changes {seed}")
        self._last: dict[str, int] = {}
        """The last change of each kind that was acknowledged."""
        self.topics: list[str] = []
        """The topics that it has tried to create."""

    async def run(self) -> None:
        """Change the metadata until it is cancelled."""
        number = 0
        while True:
            number += 1
            place = self._random.choice(self._places)
            if number % TOPIC_ONE_IN:
                await self._change(self._setting, number, partial(set_retention, place, self._topic, BASE + number))
            else:
                self.topics.append(f"{self._topic}-made-{number}")
                await self._change(f"{CHANGES}{self.topics[-1]}", 1, partial(create, place, self.topics[-1]))
            await asyncio.sleep(PAUSE_S)

    @property
    def _setting(self) -> str:
        return f"{CHANGES}{self._topic}"

    async def _change(self, key: str, number: int, ask: Callable[[], Awaitable[int]]) -> None:
        self._recorder.note(partial(CommitStart, CLIENT, key, number))
        kind, error = UNKNOWN, "no answer"
        try:
            code = await ask()
            error = f"error {code}"
            if code == Error.NONE.value:
                kind, self._last[key] = ACKNOWLEDGED, number
        except NOT_REACHED as missed:
            error = type(missed).__name__
        finally:  # also if it is cancelled
            self._recorder.note(partial(CommitOutcome, key, number, kind, None if kind == ACKNOWLEDGED else error))

    async def read_at_the_end(self) -> None:
        """Read what each broker knows, once all know the same, and all that was acknowledged.

        A change without an answer may still be made, and one broker learns of it before another.
        """
        end = time.monotonic() + LEARNED_S
        found = await self._known_by_all()
        while not self._is_learned(found) and time.monotonic() < end:
            await asyncio.sleep(PAUSE_S)
            found = await self._known_by_all()
        for place, known in zip(self._places, found, strict=True):
            reader = f"{CLIENT}-{place[1]}"
            for key in (self._setting, *(f"{CHANGES}{topic}" for topic in self.topics)):
                self._recorder.note(partial(OffsetFetchStart, reader, key))
                self._recorder.note(partial(OffsetFetchOutcome, reader, key, known.get(key, NOTHING)))

    def _is_learned(self, found: Sequence[dict[str, int]]) -> bool:
        first, *others = found
        has_all = all(first.get(key, NOTHING) >= number for key, number in self._last.items())
        return has_all and all(one == first for one in others)

    async def _known_by_all(self) -> list[dict[str, int]]:
        return [await self._known(place) for place in self._places]

    async def _known(self, place: Place) -> dict[str, int]:
        """The changes that a broker knows; none, if it does not answer."""
        try:
            known = await retention(place, self._topic)
            there = await topics_at(place)
        except NOT_REACHED:
            return {}
        found = {f"{CHANGES}{topic}": 1 for topic in self.topics if topic in there}
        return found if known is None or known < BASE else {**found, self._setting: known - BASE}


async def set_retention(place: Place, topic: str, value: int) -> int:
    """Change the setting of a topic; the error. Raises: those of `NOT_REACHED`."""
    change = Message(name=SETTING, config_operation=SET, value=str(value))
    resource = Message(resource_type=TOPIC_KIND, resource_name=topic, configs=[change])
    answer = await ask_once(place, "IncrementalAlterConfigs", 1, TIMEOUT_S, resources=[resource], validate_only=False)
    code: int = answer.responses[0].error_code
    return code


async def create(place: Place, topic: str) -> int:
    """Create a topic; the error. Raises: those of `NOT_REACHED`."""
    wanted = Message(name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    timeout_ms = int(TIMEOUT_S * 1000)
    answer = await ask_once(place, "CreateTopics", 5, TIMEOUT_S, topics=[wanted], timeout_ms=timeout_ms, validate_only=False)
    code: int = answer.topics[0].error_code
    return code


async def retention(place: Place, topic: str) -> int | None:
    """The setting of a topic as a broker knows it. Raises: those of `NOT_REACHED`."""
    resource = Message(resource_type=TOPIC_KIND, resource_name=topic, configuration_keys=[SETTING])
    answer = await ask_once(place, "DescribeConfigs", 4, TIMEOUT_S, resources=[resource])
    found = [one.value for one in answer.results[0].configs or () if one.name == SETTING]
    return int(found[0]) if found else None


async def topics_at(place: Place) -> frozenset[str]:
    """The topics that a broker knows. Raises: those of `NOT_REACHED`."""
    answer = await ask_once(place, "Metadata", 9, TIMEOUT_S, topics=None)
    return frozenset(topic.name for topic in answer.topics if topic.error_code != Error.UNKNOWN_TOPIC_OR_PARTITION.value)
