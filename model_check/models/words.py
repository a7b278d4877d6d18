"""The words of traces for values of `spec` that several models share. Importing this module registers them."""

from model_check.traces.encode import in_words
from spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from spec.log.record_log import RecordLog
from spec.values import NO_EPOCH, NO_LEADER, NO_PARTITION_EPOCH, LeaderAndIsr, Record


def record_in_words(record: Record) -> str:
    """A record by its value and leader epoch: `m0(e1)` is the first record written, in epoch 1."""
    return f"m{record.value}(e{record.leader_epoch})"


@in_words.register
def _(value: Record) -> str:
    return record_in_words(value)


@in_words.register
def _(value: RecordLog) -> str:
    opened = f" +e{value.opened_epoch}" if value.opened_epoch != NO_EPOCH else ""
    return (" ".join(record_in_words(record) for record in value.records) or "empty") + opened


@in_words.register
def _(value: LeaderAndIsr) -> str:
    if value.leader == NO_LEADER and value.leader_epoch == NO_EPOCH and not value.isr:
        return "none"
    leader = "nobody leads" if value.leader == NO_LEADER else f"{value.leader} leads"
    epoch = "" if value.leader_epoch == NO_EPOCH else f" in epoch {value.leader_epoch}"
    return f"{leader}{epoch}, ISR {in_words(value.isr)}"


@in_words.register
def _(value: PartitionIsr) -> str:
    return f"ISR {in_words(value.isr)}, partition epoch {value.partition_epoch}"


@in_words.register
def _(value: LeaderIsr) -> str:
    known = f"ISR {in_words(value.isr)}, partition epoch {value.partition_epoch}"
    return known if value.pending_epoch == NO_PARTITION_EPOCH else f"{known}, pending {in_words(value.pending_isr)}"
