"""The Markdown of the repository, made ready for the generator: names, links to what is no page, and the contents."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from kspec.cli.site.places import EXPLORER, pages, source_page, up_from

LINK = re.compile(r"(?<!!)\[((?:[^\[\]`]|`[^`]*`)*)\]\(\s*([^)\s]+)\s*\)")
FENCE = re.compile(r"^(`{3,}|~{3,})", re.MULTILINE)

CONTENTS: Mapping[str, Sequence[str]] = {
    "The story": (
        "story/index",
        "story/1-truncation-to-the-high-watermark",
        "story/2-leader-epochs",
        "story/3-fast-failovers",
        "story/4-fencing",
        "story/5-alter-partition",
        "story/6-eligible-leader-replicas",
    ),
    "What holds, what fails": ("timeline", "releases/index", "studies/index", "findings/index", "mutants"),
    "Test your broker": ("conformance", "conformance/index", "conformance-format", "world", "mirror"),
    "Check, prove, change": ("cli", "python", "explorer", "project/contributing", "GLOSSARY", "where-to-read"),
    "The rules": ("rules", "rules-controller", "rules-coordinator", "rules-by-release", "clocks"),
}
"""The contents of the site, beside the first page. Other pages stand below the one that finds the page for a question."""

REST = "where-to-read"


class UnknownTargetError(ValueError):
    """A link to a file that is not there."""


def stage(repository: Path, folder: Path) -> set[PurePosixPath]:
    """Write the pages into a folder for the generator. The result are the files that they link to and that are no pages."""
    staged = pages(repository)
    linked: set[PurePosixPath] = set()
    for page, name in staged.items():
        text = (repository / page).read_text(encoding="utf-8")
        relink = partial(relinked, page=page, repository=repository, staged=staged, linked=linked)
        text = outside_of_code(text, relink)
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join([without_drawings(text), *_contents_below(name, staged)]), encoding="utf-8")
    for picture in sorted((repository / "docs").rglob("*.svg")):
        target = folder / picture.relative_to(repository / "docs")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(picture.read_bytes())
    return linked


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """A page with what is outside of its blocks of code changed."""
    parts: list[str] = []
    block: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        found = FENCE.match(line)
        if found and (not fence or (found[1].startswith(fence) and line.strip() == found[1])):
            if not fence:
                parts.append(change("".join(block)))
                block, fence = [line], found[1]
            else:
                parts.append("".join([*block, line]))
                block, fence = [], ""
        else:
            block.append(line)
    parts.append("".join(block) if fence else change("".join(block)))
    return "".join(parts)


def relinked(
    text: str,
    page: PurePosixPath,
    repository: Path,
    staged: Mapping[PurePosixPath, PurePosixPath],
    linked: set[PurePosixPath],
) -> str:
    """A page's text with its relative links as the site has them."""

    def one(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        file, mark, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not file:
            return found[0]
        path = PurePosixPath(os.path.normpath(page.parent / file))
        if (repository / path).is_dir() and path / "README.md" in staged:
            path = path / "README.md"
        if path in staged:
            way = os.path.relpath(staged[path], staged[page].parent)
            return f"[{words}]({way}{mark}{anchor})"
        if not (repository / path).is_file():
            raise UnknownTargetError(f"{page} links to {target}, which is not there")
        linked.add(path)
        return f'<a href="{up_from(staged[page])}{source_page(path)}.html{mark}{anchor}">{_inline(words)}</a>'

    return LINK.sub(one, text)


def _inline(words: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", words)


def without_drawings(text: str) -> str:
    """A page without diagrams in Mermaid: the site draws the run itself, and asks no other site for a program."""
    folded = re.compile(r"<details>\n<summary>[^\n]*</summary>\n\n```mermaid\n.*?\n```\n\n</details>\n\n?", re.DOTALL)
    return re.sub(r"^```mermaid$", "```text", folded.sub("", text), flags=re.MULTILINE)


# ---- contents


def _contents_below(name: PurePosixPath, staged: Mapping[PurePosixPath, PurePosixPath]) -> Iterator[str]:
    """The contents that a page gets: all of the site on the first one, its neighbours on the first of a folder."""
    documents = sorted(str(page.with_suffix("")) for page in staged.values())
    if str(name) == "index.md":
        for caption, group in CONTENTS.items():
            yield _toctree([document for document in group if document in documents], caption)
    elif str(name) == f"{REST}.md":
        known = {"index", *(document for group in CONTENTS.values() for document in group)}
        yield _toctree([one for one in documents if one not in known and not _is_below_another(one, documents)])
    elif name.name == "index.md" and str(name.parent) != "story":
        below = f"{name.parent}/"
        inside = [one.removeprefix(below) for one in documents if one.startswith(below)]
        yield _toctree(sorted((one for one in inside if one != "index"), key=natural))


def _is_below_another(document: str, documents: Sequence[str]) -> bool:
    folder = document.rpartition("/")[0]
    return bool(folder) and f"{folder}/index" in documents


def natural(name: str) -> list[int | str]:
    """A key by which 0.9 comes before 0.10."""
    return [f"{int(part):09}" if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _toctree(documents: Sequence[str], caption: str = "") -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *documents, "```", ""])


def explorer_address(page: PurePosixPath, fragment: str) -> str:
    """The explorer with a run, as seen from a page."""
    return f"{up_from(page)}{EXPLORER}/index.html#{fragment}"
