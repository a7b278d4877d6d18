"""The pages of `docs/studies/`, written from the studies themselves."""

from collections.abc import Callable, Iterator
from pathlib import Path

from kspec.model_check.core.exploration import Progress
from kspec.model_check.reports.studies.catalogue import STUDIES
from kspec.model_check.reports.studies.hazards import HAZARDS, Hazard
from kspec.model_check.reports.studies.tell import StudyReport, as_markdown, tell
from kspec.model_check.traces.render import length_in_words

INDEX = "README.md"


def write_pages(folder: Path, report: Callable[[Progress], None] | None = None) -> Iterator[Path]:
    """Tell every study and write its page, then the index; yields each page when it is written."""
    folder.mkdir(parents=True, exist_ok=True)
    tellings = []
    for study in STUDIES:
        telling = tell(study, report=report)
        tellings.append(telling)
        page = folder / f"{study.name}.md"
        page.write_text(as_markdown(telling), encoding="utf-8")
        yield page
    (folder / INDEX).write_text(index(tellings), encoding="utf-8")
    yield folder / INDEX


def index(tellings: list[StudyReport]) -> str:
    """The page that lists all studies."""
    lines = [
        "# Studies",
        "",
        "Failures of Kafka's replication, past and possible. Each page is written by `kspec study --write docs/studies`:",
        "the failing run is the shortest one that the checker finds, and the repaired protocol is explored completely",
        "within the same bounds. From `latest-offset` on, states are counted up to renaming of brokers, or of consumers;",
        "those of transactions are not.",
        "",
        "| study | what happens | reference | shortest run | repaired |",
        "|---|---|---|---|---|",
    ]
    for telling in tellings:
        study = telling.study
        lines.append(
            f"| [{study.name}]({study.name}.md) | {study.summary} | {study.reference} | {length_in_words(telling.trace)}"
            f" | holds in {telling.repaired.distinct_states:,} states |"
        )
    lines += ["", "## Hazards", "", "The failures by number, as the tests and other pages name them.", ""]
    lines += ["| hazard | what goes wrong | reference | study |", "|---|---|---|---|", *map(_hazard_line, HAZARDS)]
    return "\n".join(lines) + "\n"


def _hazard_line(hazard: Hazard) -> str:
    pages = [f"[{study.name}]({study.name}.md)" for study in STUDIES if study.hazard == hazard.name]
    told = ", ".join(pages) or f"none: {hazard.why}"
    return f"| {hazard.name} | {hazard.what} | {hazard.reference} | {told} |"
