"""Conjuncts about reading: records that consumers have read stay."""

from typing import Any

from kspec.model_check.models.messages.values import FetchId
from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.symbolic.logic import all_of, any_of, implies, is_one_of
from kspec.proofs.theorems.kafka_next.view import KafkaNextView
from kspec.spec.values import BrokerId, Epoch, Error, Offset


@conjunct("FurthestCommit", "The leader that has committed furthest has committed everything that was ever committed.")
def furthest_commit(s: KafkaNextView, epoch: Epoch) -> Any:
    furthest = s.furthest_commit
    known = all_of(furthest.epoch >= 0, s.leadership(furthest.epoch).committed == furthest.end)
    return all_of(furthest.end >= 0, any_of(furthest.end == 0, known), s.leadership(epoch).committed <= furthest.end)


@conjunct("ReadableIsCommitted", "A record that can be read from a replica is committed.")
def readable_is_committed(s: KafkaNextView, broker: BrokerId, offset: Offset) -> Any:
    return implies(offset < s.high_watermark(broker), s.is_committed(s.log(broker), offset))


@conjunct("ToldIsCommitted", "A record below the high watermark in a leader's answer is committed.")
def told_is_committed(s: KafkaNextView, fetch: FetchId, offset: Offset) -> Any:
    asked, answer = s.fetch(fetch), s.fetch_answer(fetch)
    served = all_of(answer.given, is_one_of(answer.error, Error.NONE))
    return implies(all_of(served, offset < answer.high_watermark), s.is_committed(s.leader_log(asked.epoch), offset))
