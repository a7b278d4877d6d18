"""The page of the explorer as text: what it talks to stands in it as JSON."""

import json
import re
from pathlib import Path
from typing import Any

from kspec.model_check import explorer

PAGE = Path(explorer.__file__).parent / "page"
"""The folder of the page's files."""

BACK_END = re.compile(r'(<script type="application/json" id="back-end">).*?(</script>)', re.DOTALL)
"""The place in the page where its back end is named."""


def page_for(back_end: dict[str, Any], page: Path = PAGE) -> str:
    """The page that talks to this back end."""
    text, places = BACK_END.subn(
        lambda found: found[1] + as_script(back_end) + found[2], (page / "index.html").read_text("utf-8"), count=1
    )
    if not places:
        raise ValueError(f'{page / "index.html"} has no <script type="application/json" id="back-end">')
    return text


def as_script(value: Any) -> str:
    """A value as JSON that may stand within `<script>`: nothing in it ends that element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
