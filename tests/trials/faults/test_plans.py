"""Plans of rounds: which one a seed has, at which rules they are aimed, and what a loss of power leaves of a log."""

from pathlib import Path

import pytest
from click import UsageError

from kspec.cli.broker.serve import rules_of
from kspec.impl.records.batch import headers
from kspec.impl.records.record import new_batch
from kspec.spec.mutation import names_of_rules
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.trials.faults.plans.catalogue import PLANS, RANDOM, drawn, in_turn
from kspec.trials.faults.power import lose_tail
from kspec.trials.faults.rounds import RoundVerdict
from kspec.trials.history.anomalies import Anomaly
from tests.places import DOCS


def test_each_plan_is_aimed_at_rules_that_there_are() -> None:
    rules = {*names_of_rules(BROKER_NEXT), *(f"controller: {name}" for name in names_of_rules(KRAFT_NEXT))}
    assert {rule for plan in PLANS.values() for rule in plan.rules} <= rules


def test_the_page_has_all_plans() -> None:
    page = (DOCS / "cluster.md").read_text(encoding="utf-8")
    for plan in PLANS.values():
        rules = ", ".join(f"`{rule}`" for rule in plan.rules) or "none"
        assert f"| `{plan.name}` | {plan.meaning} | {rules} |" in page, plan.name


def test_a_seed_has_its_plan_and_all_plans_have_a_seed() -> None:
    plans = [drawn(seed) for seed in range(1000)]
    assert plans == [drawn(seed) for seed in range(1000)]
    assert {plan.name for plan in plans if plan is not None} == set(PLANS)
    assert 400 < sum(plan is None for plan in plans) < 600, "half of the rounds are random"


def test_seeds_have_plans_that_are_named_in_turn() -> None:
    names = ["late-news", RANDOM, "power-loss"]
    assert [in_turn(seed, names) for seed in range(1, 5)] == [
        PLANS["late-news"],
        None,
        PLANS["power-loss"],
        PLANS["late-news"],
    ]


@pytest.mark.parametrize(("kept", "batches"), [(0.0, 0), (0.5, 1), (1.0, 3)])
def test_a_loss_of_power_takes_what_was_not_synced(tmp_path: Path, kept: float, batches: int) -> None:
    written = [new_batch([(0, None, b"x" * 50)], base_offset=offset) for offset in range(3)]
    segment = tmp_path / "t-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(b"".join(written))
    lost = lose_tail(tmp_path, "t", 0, kept)
    left = segment.read_bytes()
    assert lost + len(left) == sum(map(len, written))
    assert len(left) // len(written[0]) == batches


def test_a_loss_of_power_leaves_what_was_synced(tmp_path: Path) -> None:
    segment = tmp_path / "t-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(b"".join(new_batch([(0, None, b"x")], base_offset=offset) for offset in range(3)))
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 2\n", encoding="utf-8")
    lose_tail(tmp_path, "t", 0, 0.0)
    assert [header.base_offset for header in headers(segment.read_bytes())] == [0, 1]


def test_a_release_with_one_rule_repaired() -> None:
    old, later = rules_of("0.11", None), rules_of("2.0", None)
    repaired = rules_of("0.11", "repaired:epoch_lookup@2.0")
    assert repaired.broker.epoch_lookup == later.broker.epoch_lookup != old.broker.epoch_lookup
    assert repaired.broker.takes_answer == old.broker.takes_answer != later.broker.takes_answer
    controller = rules_of("3.9", "repaired:controller: departure").controller.protocol
    assert controller.departure == KRAFT_NEXT.departure != rules_of("3.9", None).controller.protocol.departure
    with pytest.raises(UsageError, match="there is no rule 'nothing'"):
        rules_of("3.9", "repaired:nothing@next")


def test_a_verdict_in_words() -> None:
    lost = Anomaly("lost-write", "t-0", "x", ())
    verdict = RoundVerdict(7, {"sent": 1000}, (), (), (), plan="late-news")
    assert str(verdict) == "seed 7: nothing lost; 1,000 sent; plan late-news"
    assert not verdict.is_bad
    stuck = verdict._replace(stuck="broker 2 is fenced")
    assert str(stuck) == "seed 7: NEVER WHOLE: broker 2 is fenced; 1,000 sent; plan late-news"
    assert stuck.is_bad
    assert str(stuck._replace(anomalies=(lost,))).startswith("seed 7: ANOMALIES: lost-write 1; NEVER WHOLE: broker 2")
    missed = verdict._replace(missed="not within 40 s: 2 leads")
    assert str(missed).endswith("; plan late-news, not to its end: not within 40 s: 2 leads")
