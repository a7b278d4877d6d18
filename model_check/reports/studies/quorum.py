"""The studies of model `quorum`: the voters of the metadata log."""

from typing import Any

from kspec.model_check.reports.studies.study import Configuration, Study
from kspec.spec.quorum.rules.epochs import follower_if_it_knew_who_led
from kspec.spec.quorum.transitions import flush_and_count

MODEL = "quorum"
RESTART: dict[str, Any] = {"records": 0, "restarts": 1}
ALONE: dict[str, Any] = {"servers": 1, "power_losses": 1}
REPAIRED: dict[str, Any] = {"release": "next"}

QUORUM_STUDIES = (
    Study(
        name="kept-vote",
        title="A controller that lost an election ends when it starts again",
        summary="a stored vote makes a controller stand in an epoch that has a leader, and its process ends",
        reference="found with the model `quorum`; confirmed on 4.1.1 and 4.4.0",
        setup=(
            "Three controllers, Kafka 4.0 to 4.4. Two stand for election in one epoch. Since 4.0 a follower keeps the vote"
            " that it gave in the epoch, on its disk, too."
        ),
        failing=Configuration(MODEL, RESTART),
        invariant="NoIllegalState",
        outcome=(
            "The loser follows the winner, fetches a record of the epoch, and starts again. Its stored vote is its own, so"
            " it stands in that epoch once more, though the leader is stored beside it. The third controller has voted, and"
            " has not heard who leads. It calls the request invalid, as the candidate's log has a record of the epoch. That"
            " answer ends the process of the loser, and so it is at each start until another epoch begins."
        ),
        rules=(follower_if_it_knew_who_led,),
        repair="A controller that starts follows the leader that it knew. It keeps its vote, and does not stand by it.",
        repaired=Configuration(MODEL, {**RESTART, **REPAIRED}),
    ),
    Study(
        name="answers-before-flush",
        title="A controller that is alone answers before it flushes",
        summary="power fails while a lonely controller flushes, and what it has answered is lost",
        reference="found with the model `quorum`; confirmed on 3.9.2, 4.1.1 and 4.4.0",
        setup="One controller, Kafka 2.8 to 4.4. It is a majority by itself.",
        failing=Configuration(MODEL, ALONE),
        invariant="CommittedOnNewestLeader",
        outcome=(
            "The controller appends a record and counts its own log, which commits the record: its sender is answered, and"
            " brokers may have it. Power fails before the record is flushed. The controller starts again without it."
        ),
        rules=(flush_and_count,),
        repair="The leader flushes its log before it counts it. With other voters it has to wait for them anyhow.",
        repaired=Configuration(MODEL, {**ALONE, **REPAIRED}),
    ),
)
