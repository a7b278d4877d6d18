"""Every known bug has cases that are in the suite, or a reason; and the page has them all."""

from kspec.conformance.wire.cases.known_bugs import KNOWN_BUGS, known_bugs_of
from tests.conformance.wire.targets import documents
from tests.places import DOCS


def test_every_known_bug_has_cases_or_a_reason() -> None:
    names = {one["name"] for one in documents()}
    for bug in KNOWN_BUGS:
        assert bool(bug.cases) != bool(bug.why_not), bug.link
        assert names.issuperset(bug.cases), bug.link
    assert sum(bool(bug.cases) for bug in KNOWN_BUGS) == 11


def test_a_case_names_the_bugs_that_it_finds_again() -> None:
    (case,) = documents("reading/end-of-epoch.newer/undefined")
    assert case["known_bugs"] == [bug.link for bug in known_bugs_of(case["name"])]
    assert [link.rpartition("/")[2] for link in case["known_bugs"]] == ["11864"]


def test_the_page_has_every_bug_and_every_case() -> None:
    page = (DOCS / "conformance" / "known-bugs.md").read_text(encoding="utf-8")
    for bug in KNOWN_BUGS:
        row = next(line for line in page.splitlines() if f"]({bug.link})" in line)
        assert bug.what in row
        assert bug.why_not in row
        assert all(f"`{case}`" in row for case in bug.cases)
