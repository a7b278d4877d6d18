"""The site, built into a folder: the pages of docs/, the pages of source files, the explorer, and the runs."""

import io
import json
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from warnings import catch_warnings, simplefilter

from kspec.cli.site import links
from kspec.cli.site.places import EXPLORER, REPOSITORY, SOURCES, pages, up_from
from kspec.cli.site.recordings import record_runs
from kspec.cli.site.staging import UnknownTargetError, stage
from kspec.cli.site.starting_points import index
from kspec.model_check.explorer import __file__ as explorer_file
from kspec.model_check.version import VERSION

ASSETS = Path(__file__).parent / "assets"
PAGE = Path(explorer_file).parent / "page"

MARK = "kspec-site.json"
"""A file of each site. A folder that has it may be written anew."""


class SiteError(Exception):
    """A site that cannot be built, in one line."""


def check_target(folder: Path) -> None:
    """Refuse a folder that has something else in it than a site."""
    if folder.exists() and not folder.is_dir():
        raise SiteError(f"{folder} is a file; --out names a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise SiteError(f"{folder} is not empty, and no site that this command has written; name an empty or a new folder")


def build(folder: Path, tell: Callable[[str], None] = lambda words: None, repository: Path = REPOSITORY) -> dict[str, Any]:
    """Build the site and put it in place of what was in the folder. The result says how large it is.

    `SiteError` if that is not possible; the folder is then as it was.
    """
    if not (repository / "docs").is_dir():
        raise SiteError(f"there is no docs/ in {repository}: a site is built from a clone of the repository")
    check_target(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".kspec-site-", dir=folder.parent) as workplace:
        new = Path(workplace) / "site"
        new.mkdir()
        tell("the explorer")
        runs, missing = _explorer(new / EXPLORER, tell, repository)
        tell("the pages")
        _pages(Path(workplace), new, runs, tell, repository)
        tell("the links")
        wrong = list(links.broken(new))
        for one in wrong:
            tell(one)
        if wrong:
            raise SiteError(f"{len(wrong)} links of the site are wrong; the first: {wrong[0]}")
        (new / MARK).write_text(
            json.dumps({"site of": "kafka-replication-spec", "version": VERSION}) + "\n", encoding="utf-8"
        )
        told = _told(new, runs, missing)
        _put(new, folder, Path(workplace))
    return told


def _put(new: Path, folder: Path, workplace: Path) -> None:
    """Put a folder in place of another. What is served from it is gone for a moment only."""
    if not folder.exists():
        new.rename(folder)
        return
    before = workplace / "before"
    before.mkdir()
    for entry in list(folder.iterdir()):
        entry.rename(before / entry.name)
    try:
        for entry in list(new.iterdir()):
            entry.rename(folder / entry.name)
    except OSError:
        for entry in list(before.iterdir()):
            entry.rename(folder / entry.name)
        raise


def _told(site: Path, runs: Mapping[str, Any], missing: list[str]) -> dict[str, Any]:
    sizes = {file.relative_to(site): file.stat().st_size for file in site.rglob("*") if file.is_file()}
    return {
        "pages": sum(file.suffix == ".html" for file in sizes),
        "runs": len(runs),
        "bytes": sum(sizes.values()),
        "bytes of pyodide": sum(size for file, size in sizes.items() if "pyodide" in file.parts),
        "missing": missing,
    }


# ---- the explorer


def _explorer(folder: Path, tell: Callable[[str], None], repository: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The explorer's page with its index of runs. The result are the runs by name, and what the site has to do without."""
    from kspec.cli.site.live import live_explorer

    missing = live_explorer(folder)
    kept = index()
    staged = pages(repository)
    runs = {run["name"]: run for group in kept["groups"] for run in group["runs"]}
    tell("the recorded runs")
    recorded = record_runs(runs, folder / "runs", [one for one in wanted(repository, runs) if not runs[one].get("kept")])
    for run in runs.values():
        if run.get("kept"):
            run["recorded"] = run["kept"]
        if run["name"] in recorded:
            run["recorded"] = recorded[run["name"]]
        if run["doc"] and (page := staged.get(PurePosixPath(run["doc"]))):
            run["page"] = f"../../{page.with_suffix('.html')}"
    (folder / "runs" / "index.json").write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")
    return {
        name: {**run, "recorded": f"runs/{run['recorded']}"} if "recorded" in run else run for name, run in runs.items()
    }, missing


def wanted(repository: Path, runs: Mapping[str, Any]) -> list[str]:
    """The runs that pages show: those that a fence names."""
    found: set[str] = set()
    for page in pages(repository):
        found.update(re.findall(r"^```run (\S+)$", (repository / page).read_text(encoding="utf-8"), re.MULTILINE))
    return sorted(found & set(runs))


# ---- the pages


SETTINGS: Mapping[str, Any] = {
    "project": "Kafka's replication protocol",
    "html_title": "Kafka's replication, step by step",
    "html_favicon": str(PAGE / "icon.svg"),
    "extensions": ["myst_parser", "kspec.cli.site.extension"],
    "source_suffix": {".md": "markdown"},
    "root_doc": "index",
    "myst_heading_anchors": 4,
    "myst_fence_as_directive": ["run"],
    "html_theme": "furo",
    "html_theme_options": {
        "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
        "dark_css_variables": {"color-brand-primary": "#7fb8ee", "color-brand-content": "#7fb8ee"},
        "top_of_page_buttons": [],
    },
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_copyright": False,
    "html_static_path": [str(ASSETS / "static")],
    "html_css_files": ["site.css"],
    "html_search_scorer": str(ASSETS / "scorer.js"),
    "html_sidebars": {
        "**": [
            "sidebar/brand.html",
            "sidebar/search.html",
            "explorer-link.html",
            "sidebar/scroll-start.html",
            "contents.html",
            "sidebar/scroll-end.html",
        ]
    },
    "templates_path": [str(ASSETS / "templates")],
    "html_use_index": False,
    "html_domain_indices": False,
    "highlight_language": "none",
    "pygments_style": "default",
    "suppress_warnings": ["misc.highlighting_failure", "myst.header"],
}
"""The settings of the generator, Sphinx with MyST and the theme Furo. It asks no other site for fonts or scripts."""


def _pages(workplace: Path, site: Path, runs: Mapping[str, Any], tell: Callable[[str], None], repository: Path) -> None:
    """The pages of docs/, by Sphinx."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    source, output = workplace / "pages", workplace / "html"
    try:
        linked = stage(repository, source)
    except UnknownTargetError as error:
        raise SiteError(str(error)) from error
    sources = {
        str(path): repository / path
        for path in {*linked, *(file.relative_to(repository) for file in (repository / "spec").rglob("*.py"))}
    }
    settings = {
        **SETTINGS,
        "version": VERSION,
        "release": VERSION,
        "kspec_runs": dict(runs),
        "kspec_sources": sources,
        "kspec_linked": sorted(map(str, linked)),
        "kspec_embed": (site / EXPLORER / "embed.js").is_file(),
    }
    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace(), _quietly():
        app = Sphinx(source, None, output, workplace / "trees", "html", settings, status=None, warning=warnings)
        app.build(force_all=True)
    complaints = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in warnings.getvalue().splitlines() if line.strip()]
    for complaint in complaints:
        tell(complaint.removeprefix(f"{source}/"))
    if complaints:
        raise SiteError(f"{len(complaints)} warnings of Sphinx; the first: {complaints[0].removeprefix(f'{source}/')}")
    for leftover in (output / ".buildinfo", output / "objects.inv", *output.rglob("*.map")):
        leftover.unlink(missing_ok=True)
    shutil.rmtree(output / "_sources", ignore_errors=True)
    sheet, first = output / "_static" / "site.css", (output / "index.html").read_text(encoding="utf-8")
    sheet.write_text(sheet.read_text(encoding="utf-8") + _colours(first), encoding="utf-8")
    for page in sorted(output.rglob("*.html")):
        if page.relative_to(output).parts[0] != SOURCES:
            up = up_from(PurePosixPath(page.relative_to(output)))
            page.write_text(made_reachable(made_light(page.read_text(encoding="utf-8"), up)), encoding="utf-8")
    shutil.copytree(output, site, dirs_exist_ok=True)


CODE = re.compile(r'<code class="docutils literal notranslate">(.*?)</code>', re.DOTALL)
CELL = re.compile(r"<(td|th class=\"head\")><p>((?:(?!</?p>|</?t[dh]).)*)</p>\s*</(td|th)>", re.DOTALL)
UNUSED = re.compile(r' class="row-(?:even|odd)"|(?<=<li class="toctree-l1"><a) class="reference internal"')


def made_light(page: str, up: str = "") -> str:
    """A page without what no reader sees; the colours and icons of the theme are in files of their own."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    page = page.replace('<use href="#svg-', f'<use href="{up}_static/icons.svg#svg-')
    parts = re.split(r"(<(?:pre|script|textarea)\b.*?</(?:pre|script|textarea)>)", page, flags=re.DOTALL)
    return "".join(part if number % 2 else _light(part) for number, part in enumerate(parts))


def made_reachable(page: str) -> str:
    """A page whose headings have levels, and in which keys scroll what may be wider than the page."""
    page = page.replace('role="heading"', 'role="heading" aria-level="2"')
    page = page.replace("<pre>", '<pre tabindex="0">')
    return page.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')


def _light(part: str) -> str:
    part = UNUSED.sub("", re.sub(r"\s*\n\s*", "\n", part))
    part = CODE.sub(lambda code: f"<code>{re.sub('</?span[^>]*>', '', code[1])}</code>", part)
    return CELL.sub(lambda cell: f"<{cell[1]}>{cell[2]}</{cell[3]}>", part)


def _colours(page: str) -> str:
    """The theme's colours, which it writes into each page."""
    found = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    return found[1] if found else ""


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the generator's log handlers staying behind, and what it says to those who maintain its extensions."""
    logger = logging.getLogger("sphinx")
    before = list(logger.handlers)
    try:
        with catch_warnings():
            simplefilter("ignore")
            yield
    finally:
        logger.handlers = before
