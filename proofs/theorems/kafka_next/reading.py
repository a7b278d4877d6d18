"""Conjuncts about reading: what consumers have been told stays."""

from typing import Any

from model_check.models.messages.values import FetchId
from proofs.induction.invariant import conjunct
from proofs.symbolic.logic import all_of, any_of, implies, is_one_of
from proofs.theorems.kafka_next.view import View
from spec.values import BrokerId, Epoch, Error, Offset


@conjunct("Settled", "What some epoch's leader has committed furthest is all that was ever committed.")
def settled(s: View, epoch: Epoch) -> Any:
    furthest = s.settled
    known = all_of(furthest.epoch >= 0, s.term(furthest.epoch).committed == furthest.end)
    return all_of(furthest.end >= 0, any_of(furthest.end == 0, known), s.term(epoch).committed <= furthest.end)


@conjunct("ReadableIsSettled", "What can be read from a replica is committed.")
def readable_is_settled(s: View, broker: BrokerId, offset: Offset) -> Any:
    return implies(offset < s.high_watermark(broker), s.is_settled(s.log(broker), offset))


@conjunct("ToldIsSettled", "What a leader tells of its high watermark is about what is committed.")
def told_is_settled(s: View, fetch: FetchId, offset: Offset) -> Any:
    asked, answer = s.fetch(fetch), s.reply(fetch)
    served = all_of(answer.given, is_one_of(answer.error, Error.NONE))
    return implies(all_of(served, offset < answer.high_watermark), s.is_settled(s.ledger(asked.epoch), offset))
