"""Goals of a run for the broker under test: the steps that it takes part in, and their outcomes.

A step's *event* is the broker's action, its role, and the outcome: its response, and the changes of its log, its high
watermark, its role, its proposals and its producers. Runs are chosen so that every event and every pair of consecutive
events is met.
"""

from collections.abc import Callable
from functools import cache

from kspec.conformance.world.replay.model_state import ModelState
from kspec.model_check.core.model import Model, State
from kspec.model_check.models.kafka.values import NO_EXCHANGE
from kspec.spec.values import NO_EPOCH, NO_LEADER, Error

SPONTANEOUS = ("follower", "leader", "broker")
"""Arguments of an action that name a party."""


class Events:
    """The events of one broker in runs of a model."""

    def __init__(self, model: Model, real: int) -> None:
        self._model = model
        self._real = real
        self._slots = [slot.position for slot in model.slots if slot.broker == real and slot.name != "metadata"]
        self._answers: Callable[[int], Callable[[State], object] | None] = cache(self._answer_of)

    def _answer_of(self, number: int) -> Callable[[State], object] | None:
        answer = self._model.actions[number].answer
        return None if answer is None else answer.bind()

    def of(self, number: int, before: State, after: State) -> tuple[str, str] | None:
        """The event of a step: action with role, and the outcome; `None` if the broker takes no part in it."""
        action, real = self._model.actions[number], self._real
        part = next((name for name in SPONTANEOUS if action.args.get(name) == real), None)
        if part is None and all(before[one] == after[one] for one in self._slots):
            return None
        role = "" if part in ("broker", None) else f" as {part}"
        answer = self._answers(number)
        error = answer(before) if answer is not None else None
        said = [error.name] if isinstance(error, Error) and error is not Error.NONE else []
        outcome = [*said, *self._changes(ModelState(self._model, before), ModelState(self._model, after))]
        if action.name == "ReplayMetadata" and part is not None and action.args["decisions"] != 1:
            outcome.insert(0, f"{action.args['decisions']} decisions")
        return f"{action.name}{role}", ", ".join(outcome) or "nothing changes"

    def _changes(self, before: ModelState, after: ModelState) -> list[str]:
        real, found = self._real, []
        old, new = before.role(real), after.role(real)
        if (old.leader, old.leader_epoch) != (new.leader, new.leader_epoch):
            skipped = new.leader_epoch - old.leader_epoch > 1 and old.leader_epoch != NO_EPOCH
            found.append(f"{self._role(old.leader)} to {self._role(new.leader)}{' over a missed epoch' if skipped else ''}")
        was, now = before.log(real), after.log(real)
        if now.log.records[: len(was.log.records)] != was.log.records:
            found.append("truncates")
        elif now.log.records != was.log.records:
            found.append("appends")
        if now.high_watermark != was.high_watermark:
            found.append("high watermark rises" if now.high_watermark > was.high_watermark else "high watermark falls")
        if old.isr != new.isr and new.leader == real:
            found.append("ISR proposed" if new.isr.pending_isr - old.isr.pending_isr else "ISR settled")
        if before.exchange(real) != after.exchange(real):
            found.append("exchange over" if after.exchange(real) == NO_EXCHANGE else after.exchange(real).state.name)
        waits, waited = after.memory(real).waiting, before.memory(real).waiting
        if waited - waits:
            found.append("acknowledged" if after.clients.told != before.clients.told else "refused")
        elif waits - waited:
            found.append("producer waits")
        if before.fetcher(real).status != after.fetcher(real).status:
            found.append(f"fetcher {after.fetcher(real).status.value}")
        return found

    def _role(self, leader: int) -> str:
        return "nobody" if leader == NO_LEADER else "leader" if leader == self._real else "follower"
