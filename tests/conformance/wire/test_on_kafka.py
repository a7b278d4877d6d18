"""The whole of level 0 on Apache Kafka itself: it passes every case, or the case is wrong."""

from pathlib import Path

import pytest

from kspec.conformance.kafka.single import SingleKafka
from kspec.conformance.wire.run.results import Status
from kspec.conformance.wire.run.runner import needs_restart
from kspec.conformance.wire.run.versions import Choice
from kspec.spec.releases.names import RELEASES
from tests.conformance.kafka.releases import NEWEST, OLD, jars_or_skip
from tests.conformance.wire.targets import assert_all_pass, documents, run_on
from tests.limits.marks import marked

pytestmark = pytest.mark.slow

NEWER_THAN_OLD = (
    "DescribeGroups 0 to 5",
    "ListOffsets 0 to 9",
    "OffsetCommit 0 to 9",
    "OffsetFetch 0 to 9",
    "Produce 0 to 11",
    "EndTxn 0 to 4",
    "ListTransactions 0 to 1",
    "TxnOffsetCommit 0 to 4",
    "WriteTxnMarkers 0 to 1",
)
"""APIs that 3.9.2 does not offer in the versions that some cases need."""

OF_MEMBERS = ("members", "static-members", "silent-members", "session-limits")
"""The beginnings of the subjects whose cases have groups, and delete no topic."""


OF_CONSUMERS = ("consumers", "static-consumers", "consumers-offsets", "conversion")
OF_GROUPS = ("members", "static-members", "offsets", "producer-ids", "absent", *OF_CONSUMERS)


@pytest.mark.parametrize("every", marked([5, 1], nightly=[1]))
def test_the_newest_release_passes_every_case(tmp_path: Path, every: int) -> None:
    """By day each fifth, those that restart the broker among them."""
    jars = jars_or_skip(NEWEST)
    cases = documents()[::every]
    assert any(map(needs_restart, cases))
    with SingleKafka(jars, tmp_path / "kafka") as kafka:
        results = run_on(kafka.port, cases, kafka.restart)
    assert_all_pass(results)


@pytest.mark.nightly
def test_the_newest_release_passes_the_cases_of_groups_in_every_version_of_their_requests(tmp_path: Path) -> None:
    jars = jars_or_skip(NEWEST)
    cases = [one for one in documents() if one["subject"] in OF_GROUPS]
    with SingleKafka(jars, tmp_path / "kafka") as kafka:
        results = run_on(kafka.port, cases, versions=Choice.ALL)
    assert_all_pass(results)
    assert len(results) > 4 * len(cases)


@pytest.mark.nightly
def test_an_older_release_passes_every_case_that_holds_from_it_on(tmp_path: Path) -> None:
    """Before 4.0 any topic that is deleted makes the broker forget empty groups: cases with groups run by themselves."""
    jars = jars_or_skip(OLD)
    until = RELEASES.index("3.9")
    cases = [one for one in documents() if one["since"] is None or RELEASES.index(one["since"]) <= until]
    assert len(documents()) - len(cases) == 367
    of_groups = [one for one in cases if one["subject"].startswith(OF_MEMBERS)]
    others = [one for one in cases if not one["subject"].startswith(OF_MEMBERS)]
    results = []
    for name, some in (("groups", of_groups), ("others", others)):
        with SingleKafka(jars, tmp_path / name) as kafka:
            results += run_on(kafka.port, some, kafka.restart)
    assert_all_pass(results, NEWER_THAN_OLD)
    assert sum(one.status == Status.NOT_SUPPORTED for one in results) == 61
