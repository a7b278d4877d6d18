"""An extension of the generator: runs that can be stepped, names of rules that lead to their source, source pages."""

import ast
import html
import re
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from kspec.cli.site.places import EXPLORER, source_page, up_from
from kspec.cli.site.staging import explorer_address

RULE = re.compile(r"^((?:spec|model_check|impl|proofs|conformance)/[\w/]+\.py)(?:: (\w+))?$")
"""A file of the sources in a text, or a function in it."""


class RunDirective(SphinxDirective):
    """A run by its name in the index: a fence `run NAME`, whose text is the command that tells the same in a terminal."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The run as an element of the page that steps; without scripts it is a link into the explorer."""
        name = self.arguments[0]
        runs: dict[str, dict[str, Any]] = self.config.kspec_runs
        if name not in runs:
            raise self.error(f"there is no run {name!r} in the index of starting points")
        run, page = runs[name], PurePosixPath(f"{self.env.docname}.html")
        self.env.metadata[self.env.docname]["has-run"] = "yes"
        return [nodes.raw("", element(run, page, "\n".join(self.content)), format="html")]


def element(run: dict[str, Any], page: PurePosixPath, command: str = "") -> str:
    """The element of a run within a page of the site."""
    address = html.escape(explorer_address(page, run["address"]))
    steps = f"{run['steps']} steps" if run["steps"] != 1 else "1 step"
    ends = f"; in the end {' and '.join(run['fails'][:2])} fails" if run["fails"] else ""
    source = f' src="{up_from(page)}{EXPLORER}/{run["recorded"]}"' if run.get("recorded") else ""
    terminal = f'<p class="kspec-command">In a terminal: <code>{html.escape(command)}</code></p>' if command else ""
    named = f'run="{html.escape(run["name"])}" address="{html.escape(run["address"])}"'
    return (
        f'<figure class="kspec-figure"><kspec-run{source} {named}>'
        f'<p><a href="{address}">{html.escape(run["title"])}: step it in the explorer</a> ({steps}{ends})</p></kspec-run>'
        f'<figcaption><a href="{address}">Open in the explorer</a>{terminal}</figcaption></figure>'
    )


def _link_rules(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make names of source files lead to their pages."""
    sources: dict[str, Path] = app.config.kspec_sources
    up = up_from(PurePosixPath(docname))
    for literal in list(doctree.findall(nodes.literal)):
        found = RULE.match(literal.astext())
        if found is None or found[1] not in sources or isinstance(literal.parent, nodes.reference):
            continue
        line = lines_of(sources[found[1]]).get(found[2] or "")
        target = f"{up}{source_page(PurePosixPath(found[1]))}.html{f'#L-{line}' if line else ''}"
        _SHOWN.add(found[1])
        reference = nodes.reference("", "", literal.deepcopy(), refuri=target, internal=True)
        literal.replace_self(reference)


_LINES: dict[Path, dict[str, int]] = {}


def lines_of(file: Path) -> dict[str, int]:
    """The lines on which the functions and classes of a Python file begin."""
    if file not in _LINES:
        kinds = (ast.FunctionDef, ast.ClassDef)
        tree = ast.parse(file.read_text(encoding="utf-8")) if file.suffix == ".py" else ast.Module([], [])
        _LINES[file] = {node.name: node.lineno for node in ast.walk(tree) if isinstance(node, kinds)}
    return _LINES[file]


def docstring_lines(text: str) -> set[int]:
    """The lines of a Python file that stand in docstrings, those below constants included."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def source_as_html(path: str, file: Path) -> str:
    """The page of a source file: small, with an anchor at each function and class, and docstrings in another colour."""
    text = file.read_text(encoding="utf-8")
    begins = set(lines_of(file).values())
    words = docstring_lines(text) if file.suffix == ".py" else set()
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        shown = html.escape(line, quote=False)
        anchor = f' id="L-{number}"' if number in begins else ""
        lines.append(f"<i{anchor}>{shown}</i>" if number in words else f"<b{anchor}>{shown}</b>" if anchor else shown)
    up = up_from(PurePosixPath(f"{source_page(PurePosixPath(path))}.html"))
    return SOURCE_PAGE.format(path=html.escape(path), up=up, text="\n".join(lines))


SOURCE_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path}</title><link rel="stylesheet" href="{up}_static/source.css"></head>
<body><header><a href="{up}index.html">Kafka's replication protocol</a> <h1>{path}</h1></header>
<main><pre tabindex="0">{text}</pre></main></body></html>
"""


def _write_sources(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        for path, file in sorted(app.config.kspec_sources.items()):
            if path in _SHOWN or path in app.config.kspec_linked:
                page = Path(app.outdir) / f"{source_page(PurePosixPath(path))}.html"
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(source_as_html(path, file), encoding="utf-8")


_SHOWN: set[str] = set()
"""The files of the rules that a page names without a link."""


def _scripts(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    if (app.env.metadata.get(pagename) or {}).get("has-run") and app.config.kspec_embed:
        app.add_js_file(f"../{EXPLORER}/embed.js", type="module")


class ContentsBeside:
    """The contents beside pages: made once for all pages of a folder that stand below the same entry."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str, bool], str] = {}

    def __call__(
        self, app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
    ) -> None:
        """Put them in place of the generator's function. The theme asks for the whole tree, too, which no page shows."""
        tree = context.get("toctree")
        if tree is None:
            return
        entry = _entry_above(app.env.toctree_includes, pagename)
        key = pagename.rpartition("/")[0], entry, entry == pagename

        def made(collapse: bool = True, **options: Any) -> str:
            if not collapse:
                return ""
            if key not in self._made:
                self._made[key] = tree(collapse=True, **options)
            return self._made[key]

        context["toctree"] = made


def _entry_above(below: dict[str, list[str]], page: str) -> str:
    """The entry of the first page's contents under which a page stands: itself, if it has none above."""
    above = {one: parent for parent, children in below.items() for one in children}
    seen = {page}
    while above.get(page, ROOT) != ROOT and above[page] not in seen:
        page = above[page]
        seen.add(page)
    return page


ROOT = "index"
BEFORE_THE_THEME = 400
"""A priority: the generator calls those with smaller numbers first, and the theme has 500."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of this; the generator calls it."""
    app.add_config_value("kspec_runs", {}, "env")
    app.add_config_value("kspec_sources", {}, "html", types=frozenset({dict}))
    app.add_config_value("kspec_linked", [], "html", types=frozenset({list}))
    app.add_config_value("kspec_embed", False, "html")
    app.add_directive("run", RunDirective)
    app.connect("doctree-resolved", _link_rules)
    app.connect("build-finished", _write_sources)
    app.connect("html-page-context", _scripts)
    app.connect("html-page-context", ContentsBeside(), BEFORE_THE_THEME)
    return {"parallel_read_safe": False, "parallel_write_safe": False}
