"""Values that several models share, as traces show them. Importing this module makes `in_words` know them."""

from kspec.model_check.models.parts import NO_ROLE, Role
from kspec.model_check.traces.encode import in_words
from kspec.spec.broker.rules.fetcher import NOT_FETCHING, FetchState, FetchStatus
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from kspec.spec.log.epoch_history import EpochEntry
from kspec.spec.log.record_log import RecordLog
from kspec.spec.log.stored_log import StoredLog
from kspec.spec.values import NO_EPOCH, NO_LEADER, NO_PARTITION_EPOCH, UNKNOWN_OFFSET, BrokerId, LeaderAndIsr, Record


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
def _(value: StoredLog) -> str:
    own, records = value.epochs, RecordLog(value.records, value.first_offset)
    if own.latest_epoch != records.latest_epoch and own.epoch_history.entries[-1:] == (
        EpochEntry(own.latest_epoch, own.end_offset),
    ):
        records = records._replace(opened_epoch=own.latest_epoch)
    same = (own.epoch_history, own.end_offset) == (records.epoch_history, records.end_offset)
    pairs = ", ".join(f"e{epoch} from {start}" for epoch, start in own.epoch_history.pairs) or "none"
    return in_words(records) + ("" if same else f" (epochs by the history: {pairs}; end {own.end_offset})")


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


def leader_in_words(leader: BrokerId, epoch: int) -> str:
    """The leader of an epoch, if there is one."""
    return f"nobody leads in epoch {epoch}" if leader == NO_LEADER else f"{leader} leads in epoch {epoch}"


@in_words.register
def _(role: Role) -> str:
    if role == NO_ROLE:
        return "none"
    leads = role.isr != NO_ROLE.isr
    since = f" from offset {role.epoch_start}" if leads and role.epoch_start != UNKNOWN_OFFSET else ""
    return leader_in_words(role.leader, role.leader_epoch) + since + (f", {in_words(role.isr)}" if leads else "")


@in_words.register
def _(fetcher: FetchState) -> str:
    if fetcher == NOT_FETCHING:
        return "none"
    whom = f"{fetcher.leader} in epoch {fetcher.leader_epoch}"
    epoch = "" if fetcher.last_fetched_epoch == NO_EPOCH else f" after epoch {fetcher.last_fetched_epoch}"
    answered = ", answered" if fetcher.answered else ""
    if fetcher.status == FetchStatus.FETCHING:
        return f"fetches from {whom} at {fetcher.fetch_offset}{epoch}{answered}"
    if fetcher.status == FetchStatus.TRUNCATING:
        return f"asks {whom} where logs part{answered}"
    return f"{fetcher.status.value}: {whom}, at {fetcher.fetch_offset}{epoch}{answered}"
