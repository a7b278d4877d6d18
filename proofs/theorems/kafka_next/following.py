"""Conjuncts about following: fetches, their answers, and the records that a fetch shows."""

from typing import Any

from kspec.model_check.models.messages.values import FIRST_BROKER_EPOCH, FetchId
from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.symbolic.logic import (
    all_of,
    any_of,
    epoch_at,
    has_same_record,
    holds,
    implies,
    is_one_of,
    no,
    opened_epoch,
    present,
    same_record,
    value_at,
)
from kspec.proofs.theorems.kafka_next.view import KafkaNextView
from kspec.spec.broker.rules.fetcher import FetchStatus
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    UNDEFINED_EPOCH_END,
    BrokerId,
    Epoch,
    Error,
    Offset,
    Record,
)


@conjunct("FetcherFollowsLog", "A fetcher fetches from the end of its log, and names the log's last epoch.")
def fetcher_follows_log(s: KafkaNextView, broker: BrokerId) -> Any:
    fetcher, log, role = s.fetcher(broker), s.log(broker), s.role(broker)
    idle = is_one_of(fetcher.status, FetchStatus.NOT_FETCHING, FetchStatus.FAILED)
    return all_of(
        any_of(idle, s.is_fetching(broker)),
        implies(
            s.is_fetching(broker),
            all_of(
                fetcher.leader_epoch == role.leader_epoch,
                fetcher.leader == role.leader,
                role.leader_epoch >= 0,
                no(s.leads(broker)),
                fetcher.fetch_offset == log.end_offset,
                fetcher.last_fetched_epoch == log.latest_epoch,
            ),
        ),
    )


@conjunct("Fetches", "A follower sends a fetch in its own epoch, to the leader of that epoch.")
def fetches(s: KafkaNextView, broker: BrokerId, fetch: FetchId) -> Any:
    asked = s.fetch(fetch)
    epoch = asked.epoch
    sent = all_of(
        fetch < s.next_fetch,
        epoch >= 0,
        epoch <= s.epoch(broker),
        asked.leader == s.last_decision(epoch).leader,
        no(asked.leader == broker),
        asked.offset >= 0,
        asked.last_epoch >= NO_EPOCH,
        asked.last_epoch <= epoch,
        s.written_by_own_leader(broker, asked),
        any_of(asked.last_epoch < epoch, s.continues(epoch, asked)),
    )
    last = s.fetched(broker, epoch)
    of_incarnation = all_of(
        asked.broker_epoch >= FIRST_BROKER_EPOCH,
        asked.broker_epoch <= last.broker_epoch,
        any_of(last.anew, asked.broker_epoch == last.broker_epoch),
    )
    growing = implies(s.continues(epoch, asked), s.has_shown(broker, epoch, asked.offset))
    not_begun = implies(
        no(s.leadership(epoch).begun), all_of(last.offset == asked.offset, last.last_epoch == asked.last_epoch)
    )
    noted = all_of(s.has_fetched(broker, epoch), growing, not_begun)
    return implies(
        asked.follower == broker, all_of(sent, of_incarnation, implies(asked.broker_epoch == last.broker_epoch, noted))
    )


@conjunct("NoFetchYet", "The number of a fetch is used once.")
def no_fetch_yet(s: KafkaNextView, fetch: FetchId) -> Any:
    follower = s.fetch(fetch).follower
    unused = all_of(follower == NO_LEADER, no(s.fetch_answer(fetch).given))
    somebody = any_of(
        all_of(follower == NO_LEADER, no(s.fetch_answer(fetch).given)), s.some(lambda broker: follower == broker)
    )
    return all_of(somebody, s.next_fetch >= 0, implies(fetch >= s.next_fetch, unused))


@conjunct("LastFetches", "A replica fetches in epochs up to its own, from their leaders, and from the end of its log.")
def last_fetches(s: KafkaNextView, broker: BrokerId, epoch: Epoch) -> Any:
    last, registered_at = s.fetched(broker, epoch), s.registered_at(broker).leader_epoch
    of_incarnation = all_of(
        *(last.broker_epoch >= NO_BROKER_EPOCH, last.broker_epoch <= s.registered(broker).broker_epoch),
        implies(last.offset >= 0, last.broker_epoch >= FIRST_BROKER_EPOCH),
        implies(
            epoch > registered_at,
            all_of(no(last.anew), any_of(last.broker_epoch == s.registered(broker).broker_epoch, last.offset < 0)),
        ),
        implies(epoch == registered_at, all_of(last.anew, last.broker_epoch == s.registered(broker).broker_epoch)),
        implies(epoch > s.partition.leader_epoch, last.broker_epoch == NO_BROKER_EPOCH),
        any_of(last.broker_epoch >= FIRST_BROKER_EPOCH, no(last.anew)),
        implies(
            all_of(s.broker_epoch(broker) >= 0, epoch >= registered_at, last.offset >= 0),
            epoch <= s.role(broker).leader_epoch,
        ),
    )
    sent = implies(
        last.offset >= 0,
        all_of(
            epoch <= s.epoch(broker),
            no(s.last_decision(epoch).leader == broker),
            last.last_epoch >= NO_EPOCH,
            last.last_epoch <= epoch,
            any_of(last.last_epoch < epoch, s.continues(epoch, last)),
            s.written_by_own_leader(broker, last),
        ),
    )
    return all_of(of_incarnation, sent)


@conjunct("FollowerKeepsShown", "Once a fetch continues the leader's log, the follower only appends the leader's records.")
def follower_keeps_shown(s: KafkaNextView, broker: BrokerId, offset: Offset) -> Any:
    epoch, log = s.epoch(broker), s.log(broker)
    last = s.fetched(broker, epoch)
    fetched = all_of(epoch >= 0, last.offset >= 0, s.is_intact(broker, epoch))
    prefix = implies(holds(log, offset), has_same_record(s.leader_log(epoch), log, offset))
    nothing_opened = any_of(opened_epoch(log) == NO_EPOCH, log.end_offset == 0)
    keeps = all_of(log.end_offset >= last.offset, prefix, nothing_opened)
    forgotten = all_of(
        s.role(broker).leader_epoch < epoch,
        s.opened_only(broker, last.last_epoch, last.offset),
        implies(holds(log, offset), same_record(s.leader_log(last.last_epoch), log, offset)),
    )
    as_sent = all_of(last.offset == log.end_offset, any_of(last.last_epoch == log.latest_epoch, forgotten))
    return all_of(
        implies(all_of(fetched, s.continues(epoch, last)), keeps),
        implies(all_of(fetched, no(s.leadership(epoch).begun)), as_sent),
    )


@conjunct("AwaitedFetch", "While a follower waits for an answer in its epoch, its log does not change.")
def awaited_fetch(s: KafkaNextView, follower: BrokerId, leader: BrokerId) -> Any:
    number = s.awaited(follower, leader)
    asked, fetcher = s.fetch(number), s.fetcher(follower)
    last = s.fetched(follower, s.epoch(follower))
    in_epoch = all_of(number >= 0, asked.epoch == s.epoch(follower), s.is_fetching(follower))
    same = all_of(
        asked.offset == fetcher.fetch_offset,
        asked.last_epoch == fetcher.last_fetched_epoch,
        last.offset == asked.offset,
        last.last_epoch == asked.last_epoch,
    )
    own = all_of(asked.follower == follower, asked.leader == leader, asked.broker_epoch == s.broker_epoch(follower))
    return all_of(number >= -1, implies(number >= 0, own), implies(in_epoch, same))


@conjunct("FetchAnswers", "A leader answers by its log as it was in the epoch of the fetch.")
def fetch_answers(s: KafkaNextView, fetch: FetchId) -> Any:
    asked, answer = s.fetch(fetch), s.fetch_answer(fetch)
    served = all_of(answer.given, is_one_of(answer.error, Error.NONE))
    parted = diverges(answer)
    book, record = s.leader_log(asked.epoch), answer.record
    return all_of(
        implies(answer.given, all_of(asked.offset >= 0, no(is_one_of(answer.error, Error.OFFSET_OUT_OF_RANGE)))),
        implies(served, all_of(s.leadership(asked.epoch).begun, answer.high_watermark >= 0)),
        implies(all_of(served, no(parted)), s.continues(asked.epoch, asked)),
        implies(all_of(served, no(parted)), is_record_at(book, asked.offset, record)),
        implies(
            all_of(served, parted),
            all_of(
                answer.diverging.leader_epoch >= NO_EPOCH,
                answer.diverging.end_offset >= 0,
                answer.diverging.end_offset <= book.end_offset,
                any_of(asked.offset == 0, no(s.continues(asked.epoch, asked))),
            ),
        ),
    )


def diverges(answer: Any) -> Any:
    """That an answer tells the follower to truncate."""
    undefined, end = UNDEFINED_EPOCH_END, answer.diverging
    return no(all_of(end.leader_epoch == undefined.leader_epoch, end.end_offset == undefined.end_offset))


def is_record_at(book: Any, offset: Any, record: Any) -> Any:
    """That a record, if there is one, is the one that a log holds at `offset`."""
    if record is None:
        return True
    if isinstance(record, Record):
        return all_of(
            holds(book, offset), epoch_at(book, offset) == record.leader_epoch, value_at(book, offset) == record.value
        )
    return implies(present(record), is_record_at(book, offset, record.value))


@conjunct(
    "DivergingAnswers",
    "Beyond the offset at which an answer says that logs part lies no record of an epoch that both can have.",
)
def diverging_answers(s: KafkaNextView, fetch: FetchId, offset: Offset) -> Any:
    asked, answer = s.fetch(fetch), s.fetch_answer(fetch)
    parted = all_of(answer.given, is_one_of(answer.error, Error.NONE), diverges(answer))
    book = s.leader_log(asked.epoch)
    epoch = epoch_at(book, offset)
    sides = all_of(
        implies(offset < answer.diverging.end_offset, epoch <= answer.diverging.leader_epoch),
        implies(offset >= answer.diverging.end_offset, epoch > asked.last_epoch),
    )
    return implies(all_of(parted, holds(book, offset)), sides)
