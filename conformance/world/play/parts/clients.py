"""The clients of a run: producers, each with a connection of its own, and what they hear."""

import asyncio
import time

from conformance.kafka.network import Connection
from conformance.world.play.cast import PRODUCE_VERSION
from conformance.world.play.parts.performance import ARRIVAL_SECONDS, Act, DepartedError, Performance, Step
from conformance.world.play.verdict import Verdict
from conformance.world.play.watching import Answer, on_disk
from conformance.world.stage.world import POLL_SECONDS
from impl.wire.values import Message
from spec.messages.produce import ACKS_ALL, ACKS_LEADER


class Clients:
    """The producers that have sent the real broker a record."""

    def __init__(self, performance: Performance) -> None:
        self._performance = performance
        self._produced: dict[int, list[asyncio.Future[Message]]] = {}
        self._told_elsewhere: set[int] = set()
        self._connections: list[Connection] = []
        self.acts: dict[str, Act] = {"Produce": self._produce, "ProduceAgain": self._produce_again}

    # ---- sending

    async def _produce(self, step: Step) -> None:
        if step.is_of("leader", self._performance.real):
            await self._send(step.after.produced)

    async def _produce_again(self, step: Step) -> None:
        value = step.args["value"]
        if step.is_of("leader", self._performance.real):
            if value in {placed.record.value for placed in step.before.clients.told} and value not in self._produced:
                self._told_elsewhere.add(value)
            await self._send(value)

    async def _send(self, value: int) -> None:
        """Send a record on a connection of its own: a connection waits for the answer to its last request."""
        cast, parameters = self._performance.cast, self._performance.run.model.parameters
        acks = ACKS_LEADER if parameters["acks"] == "1" else ACKS_ALL
        connection = await self._performance.world.connect()
        self._connections.append(connection)
        part = Message(index=0, records=cast.record_batch(value, idempotent=self._performance.idempotent))
        topic = Message(name=cast.topic, partition_data=[part])
        request = Message(transactional_id=None, acks=acks, timeout_ms=600_000, topic_data=[topic])
        self._produced.setdefault(value, []).append(connection.send("Produce", PRODUCE_VERSION, request))

    def forget_unheard(self) -> None:
        """The broker has stopped: a producer that has no answer yet never hears."""
        self._produced = {value: sent for value, sent in self._produced.items() if all(map(_was_heard, sent))}

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            await connection.close()

    # ---- hearing

    def _answers(self, value: int) -> list[Answer]:
        found = []
        for future in self._produced.get(value, ()):
            if _was_heard(future):
                part = future.result().responses[0].partition_responses[0]
                found.append(Answer(part.error_code, part.base_offset))
        return found

    def _outcome(self, value: int) -> str:
        """What producers of one record have heard in the end."""
        answers = self._answers(value)
        if len(answers) < len(self._produced[value]):
            return "waiting"
        granted = sorted({answer.offset for answer in answers if answer.error == 0})
        return f"acknowledged at offset {granted[0]}" if granted else "refused"

    async def compare(self, step: Step) -> None:
        """What producers have heard: acknowledged, refused, or nothing yet. Raises: `DepartedError`."""
        told = {placed.record.value: placed.offset for placed in step.after.clients.told}
        waits = {waiting.request for waiting in step.after.memory(self._performance.real).waiting}
        deadline = time.monotonic() + ARRIVAL_SECONDS
        for value in self._produced:
            wanted = {"refused"} if value not in told or value in self._told_elsewhere else set[str]()
            if value in told:
                wanted.add(f"acknowledged at offset {told[value]}")
            if value in waits:
                wanted = {"waiting"}
            while self._outcome(value) not in wanted and time.monotonic() < deadline:
                if value in waits:
                    break
                self._performance.world.check()
                await asyncio.sleep(POLL_SECONDS)
            found = self._outcome(value)
            if found not in wanted:
                raise DepartedError(f"the producer of m{value}", " or ".join(sorted(wanted)), found)

    def in_words(self) -> list[str]:
        """What the producer of each record has heard so far."""
        return [f"m{value} {self._outcome(value)}" for value in self._produced]

    def count(self, verdict: Verdict) -> None:
        """Which records were acknowledged, and whether one is lost: the real broker has it no more."""
        disk = {record.value for record in on_disk(self._performance.cast)}
        for value in self._produced:
            outcome = self._outcome(value)
            if outcome.startswith("acknowledged"):
                verdict.acknowledged.append(value)
                verdict.acknowledged_lost |= value not in disk
            elif outcome == "refused":
                verdict.refused.append(value)


def _was_heard(sent: asyncio.Future[Message]) -> bool:
    return sent.done() and sent.exception() is None
