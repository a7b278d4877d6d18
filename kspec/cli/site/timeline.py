"""The timeline of releases: when each came out, which KIPs it brought, and which rules it changed."""

import re
from collections.abc import Iterator, Mapping, Sequence

from kspec.model_check.reports.matrix_pages import notes_on
from kspec.spec.mutation import RuleRecord, changed_rules
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.releases.zookeeper import ZK_RELEASES

CAME_OUT: Mapping[str, str] = {
    "0.10": "May 2016",
    "0.11": "June 2017",
    "1.0": "October 2017",
    "1.1": "March 2018",
    "2.0": "July 2018",
    "2.1": "November 2018",
    "2.2": "March 2019",
    "2.3": "June 2019",
    "2.4": "December 2019",
    "2.5": "April 2020",
    "2.6": "July 2020",
    "2.7": "December 2020",
    "2.8": "April 2021",
    "3.0": "September 2021",
    "3.1": "January 2022",
    "3.2": "May 2022",
    "3.3": "September 2022",
    "3.4": "January 2023",
    "3.5": "June 2023",
    "3.6": "September 2023",
    "3.7": "February 2024",
    "3.8": "July 2024",
    "3.9": "October 2024",
    "4.0": "March 2025",
    "4.1": "August 2025",
    "4.2": "February 2026",
    "4.3": "May 2026",
    "4.4": "October 2026",
}
"""The month of the commit that Kafka tagged as x.y.0; since 3.9 that in which its classes were built."""

CHAPTERS: Mapping[str, str] = {
    "KIP-101": "2-leader-epochs",
    "KIP-279": "3-fast-failovers",
    "KIP-320": "4-fencing",
    "KIP-497": "5-alter-partition",
    "KIP-841": "5-alter-partition",
    "KIP-903": "5-alter-partition",
    "KIP-966": "6-eligible-leader-replicas",
}
"""The chapter of the story that tells why a KIP was needed."""

INTRODUCTION = """# Timeline of releases and KIPs

What each release changed in the rules of replication. A release is the one before with some functions replaced. The
last column counts the functions that differ, and the page of a release names them. KIPs with a chapter in
[the story](story/README.md) lead there.

Written by `kspec site --timeline docs/timeline.md` from the records of releases in `spec/releases/`. The month is that of
the tag x.y.0, and since 3.9 that in which its classes were built."""


def timeline_page() -> str:
    """The page."""
    lines = [INTRODUCTION, "", "| release | made | what changed | rules that differ |", "|---|---|---|---|"]
    return "\n".join([*lines, *_lines()]) + "\n"


def _lines() -> Iterator[str]:
    for name in [release.name for release in BROKER_RELEASES]:
        notes = " ".join(_without_number(note) for note in notes_on(name)).strip()
        counts = ", ".join(f"{count} of the {party}" for party, count in _changed(name) if count)
        link, month = f"[{name}](releases/{name}.md)", CAME_OUT.get(name, "")
        yield f"| {link} | {month} | {_linked(notes) or 'other rules only'} | {counts} |"


def _without_number(note: str) -> str:
    words = re.sub(r"^[\d.]+(?: (?:and|to) [\d.]+)?(?:: |\.$)", "", note)
    return words[:1].upper() + words[1:]


def _changed(name: str) -> Iterator[tuple[str, int]]:
    """The parties, and how many of their rules differ from those of the release before."""
    parties: tuple[tuple[str, Sequence[RuleRecord]], ...] = (
        ("broker", BROKER_RELEASES),
        ("controller", ZK_RELEASES),
        ("controller", KRAFT_RELEASES),
    )
    for party, records in parties:
        names = [record.name for record in records]
        if name in names[1:]:
            place = names.index(name)
            yield party, len(changed_rules(records[place - 1], records[place]))


def _linked(notes: str) -> str:
    """The notes with each KIP that has a chapter leading there."""
    return re.sub(
        r"KIP-\d+", lambda kip: f"[{kip[0]}](story/{CHAPTERS[kip[0]]}.md)" if kip[0] in CHAPTERS else kip[0], notes
    )
