"""The model's values as a reader of traces sees them. Importing this module makes `in_words` know them."""

from kspec.model_check.models.delivery.values import (
    DeliveredLog,
    LateCommit,
    ReadingProcess,
    SendingProducer,
    SentRecord,
    Stage,
)
from kspec.model_check.models.transactions import words  # noqa: F401 (the words of a group)
from kspec.model_check.traces.encode import in_words
from kspec.spec.transactions.clients import ProducerNumbers
from kspec.spec.values import NO_PRODUCER_ID


@in_words.register
def _(state: SendingProducer) -> str:
    name = "" if state.numbers.producer_id == NO_PRODUCER_ID else f", as {_numbers(state.numbers)}"
    return f"next record {state.following}{name}"


def _numbers(numbers: ProducerNumbers) -> str:
    epoch = f" in epoch {numbers.producer_epoch}" if numbers.producer_epoch else ""
    return f"{numbers.producer_id}{epoch}, sequence {numbers.sequence}"


@in_words.register
def _(sent: SentRecord) -> str:
    if sent.answer is not None:
        return f"record {sent.record}, answered {sent.answer.name}"
    return f"record {sent.record}, {'under way' if sent.until is None else f'waits until {sent.until} are committed'}"


@in_words.register
def _(log: DeliveredLog) -> str:
    records = " ".join(f"r{record}" for record in log.records) or "empty"
    return f"{records}, {log.committed} committed"


@in_words.register
def _(state: ReadingProcess) -> str:
    if state.stage == Stage.GONE:
        return "ended"
    member = f"member in generation {state.generation}" if state.generation else "in no group"
    at = "" if state.position is None else f", next offset {state.position}"
    return f"{member}{at}{'' if state.stage == Stage.IDLE else f', {state.stage.value}'}"


@in_words.register
def _(late: LateCommit) -> str:
    request = late.request
    return f"OffsetCommit of {request.offsets[0].offset} by {request.member_id} in generation {request.generation}"
