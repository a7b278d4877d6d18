"""`kspec site`: what it builds, what it refuses, and that nothing is lost when it does."""

import filecmp
import gzip
import json
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from kspec.cli.explorer.recording import RecordingError
from kspec.cli.site import build as building
from kspec.cli.site import links
from kspec.cli.site.build import MARK, SiteError, build, check_target, made_light, made_reachable
from kspec.cli.site.extension import docstring_lines, source_as_html
from kspec.cli.site.places import pages
from kspec.cli.site.recordings import record_runs
from kspec.cli.site.staging import UnknownTargetError, outside_of_code, relinked, stage, without_drawings
from tests.model_check.commands import Command
from tests.places import DOCS, REPOSITORY

PAGES = pages(REPOSITORY)


@pytest.fixture(name="kspec")
def fixture_kspec(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


# ---- bad input


def test_a_folder_with_something_else_is_refused_and_stays(kspec: Command, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    result = kspec("site", "--out", str(tmp_path))
    assert result.mistake == (2, 1)
    assert "is not empty" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


def test_a_file_is_refused(kspec: Command, tmp_path: Path) -> None:
    file = tmp_path / "site"
    file.write_text("mine")
    result = kspec("site", "--out", str(file))
    assert result.mistake == (2, 1)
    assert "is a file" in result.stderr
    assert file.read_text() == "mine"


def test_nothing_to_do_is_said(kspec: Command) -> None:
    result = kspec("site")
    assert result.mistake == (2, 1)
    assert "--out DIR" in result.stderr


def test_a_folder_below_a_file_is_refused(kspec: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = kspec("site", "--quiet", "--out", str(tmp_path / "file" / "site"))
    assert result.mistake == (2, 1)
    assert "cannot write" in result.stderr


def test_a_folder_without_permission_is_refused(kspec: Command, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    root = os.geteuid() == 0
    if root:  # who may write everywhere
        os.seteuid(65534)
    try:
        result = kspec("site", "--quiet", "--out", str(tmp_path / "closed" / "site"))
    finally:
        if root:
            os.seteuid(0)
    assert result.mistake == (2, 1)
    assert "cannot write" in result.stderr


def test_a_package_without_docs_builds_no_site(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="from a clone"):
        build(tmp_path / "site", repository=tmp_path)
    assert not (tmp_path / "site").exists()


def test_an_older_site_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / MARK).write_text("{}")
    (tmp_path / "old.html").write_text("")
    check_target(tmp_path)


def test_a_site_that_cannot_be_built_leaves_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise SiteError("the generator has a complaint")

    (tmp_path / "site").mkdir()
    (tmp_path / "site" / MARK).write_text("{}")
    (tmp_path / "site" / "old.html").write_text("old")
    monkeypatch.setattr(building, "_explorer", fail)
    with pytest.raises(SiteError, match="complaint"):
        build(tmp_path / "site")
    assert (tmp_path / "site" / "old.html").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["site"]


# ---- pages made ready


def test_links_lead_to_pages_of_the_site_and_to_sources() -> None:
    found: set[PurePosixPath] = set()

    def on(page: str, text: str) -> str:
        return relinked(text, PurePosixPath(page), REPOSITORY, PAGES, found)

    assert on("docs/studies/README.md", "[a](../findings/README.md#x)") == "[a](../findings/index.md#x)"
    assert on("docs/README.md", "[a](studies/README.md)") == "[a](studies/index.md)"
    assert on("docs/README.md", "[a](../README.md#what-is-not-covered)") == "[a](project/readme.md#what-is-not-covered)"
    assert on("README.md", "[d](docs/)") == "[d](../where-to-read.md)"
    assert on("docs/rules.md", "[s](../spec/values.py)") == '<a href="source/spec/values.py.html">s</a>'
    assert on("docs/rules.md", "[s](https://example.org) [t](#here)") == "[s](https://example.org) [t](#here)"
    assert on("docs/findings/README.md", "[by\nseed](\n../models.md#mutants)") == "[by\nseed](../models.md#mutants)"
    assert found == {PurePosixPath("spec/values.py")}
    with pytest.raises(UnknownTargetError, match=r"docs/rules.md links to nowhere.md"):
        on("docs/rules.md", "[a](nowhere.md)")


def test_code_is_left_as_it_is() -> None:
    text = "a\n```sh\na\n```\na\n~~~\na\n~~~\n```\na"
    assert outside_of_code(text, lambda part: part.replace("a", "b")) == "b\n```sh\na\n```\nb\n~~~\na\n~~~\n```\na"


def test_diagrams_that_need_another_program_are_left_out() -> None:
    folded = "x\n\n<details>\n<summary>d</summary>\n\n```mermaid\nsequenceDiagram\n```\n\n</details>\n\ny\n"
    assert without_drawings(folded) == "x\n\ny\n"
    assert without_drawings("```mermaid\na\n```\n") == "```text\na\n```\n"


def test_every_page_of_the_repository_is_in_the_contents(tmp_path: Path) -> None:
    stage(REPOSITORY, tmp_path)
    listed: set[str] = set()
    for page in PAGES.values():
        trees = re.findall(r"```\{toctree\}\n(.*?)```", (tmp_path / page).read_text(encoding="utf-8"), re.DOTALL)
        for line in "\n".join(trees).splitlines():
            if line and not line.startswith(":"):
                listed.add(str(page.parent / line))
    assert listed == {str(page.with_suffix("")) for page in PAGES.values()} - {"index"}
    assert {page.relative_to(REPOSITORY).as_posix() for page in DOCS.rglob("*.md")} <= {str(page) for page in PAGES}


def test_what_nobody_sees_is_left_out_and_code_is_as_it_was() -> None:
    word = '<code class="docutils literal notranslate"><span class="pre">a</span> <span class="pre">b</span></code>'
    assert made_light(f"<td><p>{word}</p></td>") == "<td><code>a b</code></td>"
    assert made_light('<style>a { b: c }</style><use href="#svg-sun">', "../") == '<use href="../_static/icons.svg#svg-sun">'
    assert made_light("<td><p>a</p><p>b</p></td>") == "<td><p>a</p><p>b</p></td>"
    assert made_light("<p>\n\n   a  b\n</p><pre>\n  x\n\n</pre>  \n ") == "<p>\na  b\n</p><pre>\n  x\n\n</pre>\n"


def test_what_scrolls_can_be_reached_by_keys() -> None:
    assert made_reachable("<pre>a</pre>") == '<pre tabindex="0">a</pre>'
    assert made_reachable('<div class="table-wrapper x">') == '<div tabindex="0" class="table-wrapper x">'
    assert made_reachable('<p role="heading">a</p>') == '<p role="heading" aria-level="2">a</p>'


def test_a_source_page_has_its_text_and_anchors(tmp_path: Path) -> None:
    file = tmp_path / "rules.py"
    file.write_text('"""Words."""\n\n\ndef rule(x: int) -> bool:\n    """Whether x < 1."""\n    return x < 1\n')
    page = source_as_html("spec/rules.py", file)
    assert '<b id="L-4">def rule(x: int) -&gt; bool:</b>' in page
    assert '<i>    """Whether x &lt; 1."""</i>' in page
    assert 'href="../../_static/source.css"' in page
    assert docstring_lines(file.read_text()) == {1, 5}


# ---- recordings


def test_a_run_is_recorded_once_for_each_address(tmp_path: Path) -> None:
    one = {"address": "truncate-to-hw~replicas.2~~ControllerElectLeader_replica.1~BecomeLeader_leader.1_epoch.0"}
    other = {"address": "kip-101~replicas.2"}
    files = record_runs({"a": one, "b": other, "c": one, "d": other}, tmp_path, ["a", "b", "c"])
    assert files == {"a": "a.run", "b": "b.run", "c": "a.run", "d": "b.run"}
    kept = json.loads(gzip.decompress((tmp_path / "a.run").read_bytes()))
    assert (kept["format"], len(kept["views"]), kept["answers"]) == (1, 3, [])
    assert {path.name for path in tmp_path.iterdir()} == {"a.run", "b.run"}


def test_a_run_that_is_not_possible_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="BecomeLeader"):
        record_runs({"a": {"address": "truncate-to-hw~replicas.2~~BecomeLeader_leader.1_epoch.0"}}, tmp_path, ["a"])


# ---- links


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.html").write_text('<h1 id="there">B</h1><a href="../c.html#here">c</a><a href="">self</a>')
    (tmp_path / "c.html").write_text(
        '<a href="a/b.html#there">1</a><a href="a/b.html#gone">2</a><a href="/a/b.html">3</a><a href="../x.html">4</a>'
        '<a href="d.html">5</a><a href="https://example.org/x">6</a><script src="https://example.org/s.js"></script>'
        '<img src="no.png"><a href="#top">7</a>'
    )
    (tmp_path / "s.css").write_text("@import url(https://example.org/font.css);")
    assert sorted(links.broken(tmp_path)) == [
        "a/b.html links to ../c.html#here: the page has no such anchor",
        "c.html links to #top: the page has no such anchor",
        "c.html links to ../x.html: outside of the site",
        "c.html links to /a/b.html: an absolute address, which is wrong below another prefix",
        "c.html links to a/b.html#gone: the page has no such anchor",
        "c.html links to d.html: there is no such file",
        "c.html links to no.png: there is no such file",
        "c.html loads https://example.org/s.js from another site",
        "s.css loads https://example.org/font.css from another site",
    ]


# ---- a whole site


@pytest.mark.slow
@pytest.mark.xdist_group("site")
def test_a_site_is_whole(site: Path) -> None:
    assert list(links.broken(site)) == []
    first = (site / "index.html").read_text(encoding="utf-8")
    assert "kspec-run" in first
    assert 'href="story/index.html"' in first
    assert 'href="explorer/index.html"' in first
    kept = json.loads((site / "explorer" / "runs" / "index.json").read_text(encoding="utf-8"))
    for group in kept["groups"]:
        for run in group["runs"]:
            for name in ("page", "recorded"):
                assert name not in run or (site / "explorer" / "runs" / run[name]).is_file(), run
    assert all("recorded" in run for group in kept["groups"] if group["group"] == "studies" for run in group["runs"])


@pytest.mark.slow
@pytest.mark.xdist_group("site")
def test_a_site_is_small_enough(site: Path) -> None:
    sizes = {file.relative_to(site): file.stat().st_size for file in site.rglob("*") if file.is_file()}
    assert sum(sizes.values()) <= 20_000_000
    assert sum(size for file, size in sizes.items() if "pyodide" in file.parts) <= 6_200_000


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.xdist_group("site")
def test_a_site_is_the_same_when_it_is_built_again(site: Path, tmp_path: Path) -> None:
    build(tmp_path / "again")
    names = sorted(str(file.relative_to(site)) for file in site.rglob("*") if file.is_file())
    again = sorted(str(file.relative_to(tmp_path / "again")) for file in (tmp_path / "again").rglob("*") if file.is_file())
    assert names == again
    assert filecmp.cmpfiles(site, tmp_path / "again", names, shallow=False)[1:] == ([], [])
