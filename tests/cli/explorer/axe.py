"""The findings of axe-core on a page that a browser shows."""

from typing import Any

import pytest

from kspec.cli.explorer.npm import Package, PackageError

AXE = Package(
    "axe-core",
    "4.14.1",
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
)


def script() -> str:
    """The program. Without it the test is skipped, loudly."""
    try:
        return (AXE.folder() / "axe.min.js").read_text(encoding="utf-8")
    except PackageError as error:
        pytest.skip(f"NOT RUN: {error}")


def serious(page: Any, axe: str) -> list[str]:
    """Findings that are serious or critical."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
