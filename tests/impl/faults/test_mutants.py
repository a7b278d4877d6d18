"""What rounds on processes have found is what the page says, and a round's output is read as it is written."""

from tests.impl.faults.mutants import MUTANTS, NEVER_WHOLE, OTHERS, PAGE, judged, known, page

ROUND = (
    "ready 127.0.0.1:1\n"
    "seed 1: ANOMALIES: lost-write 1, duplicate 2; 3,977 sent; kill 3\n"
    "record: 52,591 steps of 12 starts, all come out as recorded\n"
    "rule start_following: not as in next, decided 1,820 steps otherwise, first 1/steps-1.jsonl:2 (apply_change)\n"
)


def test_the_page_says_what_was_found() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(known())
    assert set(known()) <= {one.name for one in MUTANTS} | set(OTHERS)


def test_the_record_of_a_mutant_that_was_found_names_its_rule() -> None:
    fields = {one.name: one.field for one in MUTANTS}
    found = {name: one for name, one in known().items() if "found" in one and name in fields}
    assert found
    for name, one in found.items():
        assert any(fields[name] in rule for rule in one["rules"]), name


def test_a_round_is_read_as_it_is_written() -> None:
    assert judged(ROUND) == {"found": "lost-write 1, duplicate 2", "rules": {"start_following": 1820}}
    assert judged("seed 1: nothing lost; 3 sent, 3 acknowledged\n") is None
    assert judged("seed 1: lost as acks=1 may: lost-write 4; 3 sent\n") == {"found": "lost-write 4", "rules": {}}
    assert judged("kspec: not whole again after 180 s: t-0 leader -1") == {"found": NEVER_WHOLE, "rules": {}}
