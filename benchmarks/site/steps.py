"""Time of steps in the explorer on a static site: `python -m benchmarks.site.steps [--steps 30] [--models kafka]`.

Chromium shows the page; Pyodide runs the rules in a web worker. A step is timed in the page, from the click until the frame
after it is painted, and once more as whoever drives the browser sees it. A load is warm: the browser has the files.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.engines import write_readme
from kspec.cli.site.live import live_explorer
from kspec.model_check.explorer import Explorer
from kspec.model_check.models import MODELS
from tests.cli.explorer.chromium import browser, served

WALKED = 300
"""Random steps of a model in which the state with the most possible actions is looked for."""

PATIENCE_MS = 120_000

NOTING = """
const taken = { asked: 0, worker: 0 };
globalThis.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => { if (data.answer) taken.worker = performance.now() - taken.asked; });
  }
  postMessage(...given) {
    taken.asked = performance.now();
    super.postMessage(...given);
  }
};
const settled = (page) => new Promise((resolve) => {
  const look = () => page.getAttribute("aria-busy") === "false" && (watch.disconnect(), resolve());
  const watch = new MutationObserver(look);
  watch.observe(page, { attributes: true });
});
const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
globalThis.timedStep = async (key) => {
  const page = document.getElementById("explorer"), begun = performance.now();
  const drawn = settled(page);
  document.querySelector(`[data-key="${key}"]`).click();
  await drawn;
  const changed = performance.now();
  await painted();
  const end = performance.now();
  return { whole: end - begun, worker: taken.worker, drawing: changed - begun - taken.worker, frame: end - changed };
};
"""
"""A script that the page begins with: the time of a click on a button, and its parts, in milliseconds."""


class StepTime(NamedTuple):
    """The time of a step in milliseconds: all of it, its parts, and what whoever drives the browser waits."""

    whole: float
    worker: float
    drawing: float
    frame: float
    driven: float


class CrowdedState(NamedTuple):
    """A state in which many actions are possible: their number, and its address."""

    possible: int
    address: str


def most_crowded(model: str, steps: int, seed: int = 1) -> CrowdedState:
    """The state of a random walk in which the most actions are possible."""
    chance, explorer = random.Random(seed), Explorer()
    start = {"do": "start", "model": model, "parameters": {}}
    view = explorer.answer(start)
    found = CrowdedState(0, "")
    for _ in range(steps):
        possible = [move["index"] for move in view["moves"] if move["enabled"]]
        if len(possible) > found.possible:
            found = CrowdedState(len(possible), view["address"])
        done = not possible or view["position"] > 40
        view = explorer.answer(start if done else {"do": "step", "index": chance.choice(possible)})
    return found


class Stepper:
    """A tab with the page, in which steps are timed."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script(NOTING)

    def load(self, fragment: str) -> float:
        """Load the page with a run, and wait until it is shown. The result are the seconds."""
        self.page.goto("about:blank")
        begun = time.perf_counter()
        self.page.goto(f"{self.url}#{fragment}")
        self._settle()
        return time.perf_counter() - begun

    def open(self, fragment: str) -> None:
        """Open a run in the page that is loaded."""
        self.page.evaluate("fragment => { location.hash = fragment; }", fragment)
        self.page.wait_for_timeout(50)
        self._settle()

    def _settle(self) -> None:
        self.page.locator('#explorer[aria-busy="false"] .possible button').first.wait_for()

    def step(self, chance: random.Random) -> StepTime | None:
        """Take one of the possible actions; none where nothing is possible."""
        keys = self.page.locator(".possible button").evaluate_all("all => all.map((one) => one.dataset.key)")
        if not keys:
            return None
        begun = time.perf_counter()
        told = self.page.evaluate("key => timedStep(key)", chance.choice(keys))
        driven = 1e3 * (time.perf_counter() - begun)
        return StepTime(**told, driven=driven)

    def walk(self, fragment: str, steps: int, again: Callable[[int], bool]) -> list[StepTime]:
        """The times of so many random steps; before those with a number that `again` takes the run is opened anew."""
        chance, found = random.Random(1), list[StepTime]()
        while len(found) < steps:
            if again(len(found)):
                self.open(fragment)
            told = self.step(chance)
            if told is None:
                self.open(fragment)
            else:
                found.append(told)
        return found


def line_of(model: str, stepper: Stepper, crowded: CrowdedState, steps: int) -> str:
    """The line of a model: a warm load, steps of a walk, and steps from the state with the most possible actions."""
    load = stepper.load(model)
    first = stepper.step(random.Random(1))
    assert first is not None
    walked = stepper.walk(model, steps, lambda number: number == 0)
    worst = stepper.walk(crowded.address, steps // 3, lambda number: True)
    middle = StepTime(*(statistics.median(one) for one in zip(*walked, strict=True)))
    cells: Sequence[object] = (
        f"{load + first.driven / 1e3:.1f}",
        f"{middle.whole:.0f}",
        f"{middle.worker:.0f}",
        f"{middle.drawing:.0f}",
        f"{middle.frame:.0f}",
        f"{middle.driven:.0f}",
        f"{max(one.whole for one in walked):.0f}",
        f"{crowded.possible}: {statistics.median(one.whole for one in worst):.0f}, {max(one.whole for one in worst):.0f}",
    )
    return f"| `{model}` | {' | '.join(map(str, cells))} |"


def main() -> None:
    """Time the steps of each model, print the table, and put it on the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30, help="random steps of each model")
    parser.add_argument("--models", default=",".join(MODELS), help="the models, with commas between them")
    parser.add_argument("--print-only", action="store_true", help="leave the page of the benchmarks as it is")
    given = parser.parse_args()
    head = (
        "model",
        "first step (s)",
        "step",
        "worker",
        "drawing",
        "frame",
        "driven",
        "longest",
        "most actions: step, longest",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    print(*lines, sep="\n")
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        missing = live_explorer(Path(folder) / "site")
        if missing:
            parser.error(f"the site is without {missing[0]}")
        with served(Path(folder) / "site") as url:
            stepper = Stepper(chromium.new_page(), url)
            stepper.load("kip-101")  # the browser has the files then
            for model in given.models.split(","):
                lines.append(line_of(model, stepper, most_crowded(model, WALKED), given.steps))
                print(lines[-1], flush=True)
        text = TEXT.format(
            chromium=chromium.version,
            cores=os.cpu_count(),
            before=before,
            load=os.getloadavg()[0],
            steps=given.steps,
            walked=WALKED,
            table="\n".join(lines),
        )
    if not given.print_only:
        write_readme("site/steps", text)


TEXT = """The explorer as a static site, in Chromium {chromium}: Pyodide in a web worker, each model within its usual bounds;
{cores} cores, which had a load of {before:.0f} before and of {load:.0f} at the end: steps wait for other work where it is
more than the cores. The first column is a warm load up to the end of the first step, in seconds. The others are of {steps}
random steps, in milliseconds, medians: from the click until the frame after it is painted (*step*), the parts of that (the
worker's answer, drawing, the frame), and the same as whoever drives the browser waits for it (*driven*). *Longest* is the
longest of these steps. *Most actions* are steps from the state of {walked} random ones in which the most actions are
possible: how many, the median and the longest.

{table}
"""

if __name__ == "__main__":
    main()
