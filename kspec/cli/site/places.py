"""Places: each file of the repository that the site shows, and its name there."""

from pathlib import Path, PurePosixPath

REPOSITORY = Path(__file__).resolve().parents[3]
"""The clone that the site is built from."""

SOURCES = "source"
"""The folder of the site with the pages of source files."""

EXPLORER = "explorer"
"""The folder of the site with the explorer."""

OUTSIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")
"""The pages of the repository that are not in docs/."""

RENAMED = {
    "docs/start.md": "index.md",
    "docs/README.md": "where-to-read.md",
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
"""The pages that have another name on the site."""


def pages(repository: Path) -> dict[PurePosixPath, PurePosixPath]:
    """Each Markdown page of the repository that the site has, with its name there; both from the root."""
    found = [*(repository / "docs").rglob("*.md"), *(repository / name for name in OUTSIDE)]
    names = sorted(page.relative_to(repository).as_posix() for page in found if page.is_file())
    return {PurePosixPath(name): PurePosixPath(_staged(name)) for name in names if "/." not in name}


def _staged(name: str) -> str:
    if name in RENAMED:
        return RENAMED[name]
    inside = name.removeprefix("docs/")
    return f"{inside.removesuffix('README.md')}index.md" if inside.endswith("/README.md") else inside


def source_page(path: PurePosixPath) -> str:
    """The page of a source file, without its ending."""
    return f"{SOURCES}/{path}"


def up_from(page: PurePosixPath) -> str:
    """The way from a page to the root of the site."""
    return "../" * (len(page.parts) - 1)
