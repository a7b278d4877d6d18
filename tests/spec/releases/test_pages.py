"""Changes of each release, in the tables of `docs/releases`: `kspec matrix --write docs/releases` makes them."""

import re
from itertools import pairwise
from typing import Any

import pytest

from kspec.spec.mutation import changed_rules
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.releases.zookeeper import ZK_RELEASES
from tests.places import DOCS

RELEASES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("broker", BROKER_RELEASES),
    ("controller", ZK_RELEASES),
    ("controller", KRAFT_RELEASES),
)
NEIGHBOURS = [
    pytest.param(party, before, after, id=f"{party} {before.name} to {after.name}")
    for party, releases in RELEASES
    for before, after in pairwise(releases)
]


@pytest.mark.parametrize(("party", "before", "after"), NEIGHBOURS)
def test_the_page_of_a_release_has_the_rules_that_it_changed(party: str, before: Any, after: Any) -> None:
    page = (DOCS / "releases" / f"{after.name}.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| {party} \| `(\w+)` \| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)
    assert {rule: (was, now) for rule, was, now in rows} == changed_rules(before, after)


@pytest.mark.parametrize("releases", [ZK_RELEASES, KRAFT_RELEASES], ids=["ZooKeeper", "KRaft"])
def test_a_controller_is_listed_only_where_it_changed(releases: tuple[Any, ...]) -> None:
    assert all(changed_rules(before, after) for before, after in pairwise(releases))
