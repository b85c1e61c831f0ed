"""The console over 10 million rows a level, in Chromium on loopback: first paint, and from a key to a picture.

``python -m benchmarks.console`` asks the store of ``benchmarks.retrieval``. It needs the browser of ``make setup``.
"""

from __future__ import annotations

import argparse
import shutil

from playwright.sync_api import Page, sync_playwright

from benchmarks.common import emit, machine, percentile
from benchmarks.ours_retrieval import Rollup
from rollup.conf import load
from tests.console.served import serving

BENCH = "console"
PAINT_AIM, ZOOM_AIM = 1000, 150
VIEWS = {"a year per days": "2018", "a month per hours": "2018-02", "a day per minutes": "2018-03-05"}
MOVES = ("ArrowRight", "+", "ArrowLeft", "-", "+", "ArrowRight", "ArrowRight", "-")
_MOVE = """async (key) => {
  const was = location.search, begun = performance.now();
  document.getElementById("chart").dispatchEvent(new KeyboardEvent("keydown", {key}));
  while (location.search === was) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def measured(page: Page, name: str, address: str, moves: int, rows: int) -> None:
    """Emit the lines of one view."""
    paints = list[float]()
    for _ in range(5):
        page.goto(address)
        page.wait_for_selector("#chart canvas")
        paints.append(page.evaluate(_PAINT))
    cold, *hot = paints
    emit(BENCH, f"first paint: {name}", cold, "ms", temperature="cold", store_rows=rows, aim=PAINT_AIM)
    emit(BENCH, f"first paint: {name}", percentile(hot, 50), "ms", temperature="hot", store_rows=rows, aim=PAINT_AIM)
    taken = [page.evaluate(_MOVE, MOVES[number % len(MOVES)]) for number in range(moves)]
    for percent in (50, 95):
        value = percentile(taken, percent)
        emit(BENCH, f"zoom p{percent}: {name}", value, "ms", temperature="hot", store_rows=rows, aim=ZOOM_AIM)


def main() -> None:
    """Make the store where there is none, and look at it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--moves", type=int, default=40)
    given = parser.parse_args()
    machine(BENCH)
    with serving(load(Rollup().prepare(given.rows))) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(base_url=address, viewport={"width": 1280, "height": 900})
        page.goto("/explore")
        here = page.url.partition("?")[0]
        for name, range_ in VIEWS.items():
            measured(page, name, f"{here}?range={range_}", given.moves, given.rows)
        browser.close()


if __name__ == "__main__":
    main()
