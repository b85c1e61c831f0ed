"""The console's flows in a real browser: zoom, keys, the way back, dark and narrow, and the rules of accessibility."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.console.served import MARKUP, serving, stored
from tests.gateway.trades import APP, KEEPING, at, events

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium: not installed, see scripts/setup.sh browser")
JANUARY = "/explore/TradeAgg?measure=total&range=2018-01"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(stored(tmp_path_factory.mktemp("console"), KEEPING)) as found:
        yield found


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=address)
    made = context.new_page()
    wrong = list[str]()
    made.on("pageerror", lambda problem: wrong.append(str(problem)))
    made.on("request", lambda request: request.url.startswith((address, "data:")) or wrong.append(request.url))
    yield made
    context.close()
    assert not wrong, "no script fails, and nothing is fetched from elsewhere"


def shown(page: Page) -> dict[str, Any]:
    """The range and level that the page shows."""
    found = {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}
    return {**found, "level": page.inner_text("#level").split(",")[0]}


def drag(page: Page, start: float, end: float) -> None:
    """Draw a range on the chart from one share of its width to another."""
    box = page.locator("#chart .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + start * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], box["y"] + 60, steps=4)
    page.mouse.up()


def test_a_drag_zooms_to_a_finer_level_and_the_way_back_leads_out(page: Page) -> None:
    page.goto(JANUARY)
    page.wait_for_selector("#chart canvas")
    assert shown(page)["level"] == "hours"
    drag(page, 8 / 31, 9 / 31)
    expect(page.locator("#level")).to_contain_text("minutes")
    now = shown(page)
    assert abs(int(now["from"]) - at("2018-01-09")) < 7_200_000 > abs(int(now["to"]) - at("2018-01-10"))
    first = page.locator("#table tbody tr").first.inner_text()
    assert first.split("\t") == ["2018-01-09 09:00:00", "27"], "the two prices of the ninth"
    assert page.input_value("[name=from]").startswith("2018-01-0")
    page.go_back()
    expect(page.locator("#level")).to_contain_text("hours")
    page.go_forward()
    expect(page.locator("#level")).to_contain_text("minutes")


def test_values_between_gaps_are_seen(page: Page) -> None:
    page.goto(JANUARY)
    page.wait_for_selector("#chart canvas")
    assert shown(page)["level"] == "hours", "three an hour apart each day, and a gap around each"
    coloured = """() => {
        const canvas = document.querySelector("#chart canvas");
        const found = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let count = 0;
        for (let i = 0; i < found.length; i += 4) count += found[i] < 40 && found[i + 2] > 120 && found[i + 3] > 200;
        return count;
    }"""
    assert page.evaluate(coloured) > 84


def test_the_link_of_a_view_shows_it_to_a_colleague(page: Page) -> None:
    page.goto(JANUARY + "&split=symbol")
    drag(page, 0.2, 0.4)
    page.wait_for_url("**from=*")
    expect(page.locator("#link")).to_have_attribute("href", re.compile("split=symbol.*from="))
    table = page.inner_text("#table")
    page.goto(page.locator("#link").evaluate("link => link.href"))
    assert page.inner_text("#table").split() == table.split()


def test_keys_move_and_zoom(page: Page) -> None:
    page.goto(JANUARY)
    page.focus("#chart")
    page.keyboard.press("+")
    page.wait_for_url("**from=*")
    near = shown(page)
    assert int(near["to"]) - int(near["from"]) == pytest.approx(31 * 86_400_000 / 2, rel=0.01)
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda url: near["from"] not in url)
    assert int(shown(page)["from"]) > int(near["from"])
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "from" not in url and "range" not in url)


def test_choices_are_in_the_address(page: Page) -> None:
    page.goto(JANUARY)
    page.select_option("[name=split]", "symbol")
    page.select_option("[name=per]", "days")
    page.click("text=Show")
    page.wait_for_url("**split=symbol*")
    assert shown(page)["per"] == "days"
    assert page.locator("#table thead").inner_text().split() == ["time", "B", "A"]
    page.fill("[name=zone]", "Asia/Tokyo")
    page.click("text=Show")
    page.wait_for_url("**zone=Asia%2FTokyo*")
    assert "days in Asia/Tokyo" in page.inner_text("#level")


def test_a_live_chart_shows_what_is_committed(browser: Browser, tmp_path: Path) -> None:
    from tests.gateway.trades import host

    conf = stored(tmp_path)
    with serving(conf) as found:
        page = browser.new_page(base_url=found)
        page.goto("/explore/TradeAgg?measure=total&range=2018-02&per=days")
        assert "nothing in this range" in page.inner_text("#said")
        with page.expect_request("**/api/changes"):
            page.check("#live")
        page.wait_for_timeout(1500)
        host(conf).send("Trades", list(events("2018-02", 3)))
        page.wait_for_selector("text=2018-02-03 00:00:00", timeout=15_000)
        page.close()


def test_a_question_is_asked_with_keys_and_a_refusal_is_read_out(page: Page) -> None:
    page.goto("/ask")
    page.fill("#q", "from TradeA")
    page.keyboard.press("Tab")
    assert page.input_value("#q") == "from TradeAgg"
    page.keyboard.type(" within '2018-01' per ")
    page.keyboard.press("Control+Space")
    levels = page.locator("#choices [role=option]")
    assert levels.all_inner_texts() == [
        f"'{each}s'" for each in ("second", "minute", "hour", "day", "month", "year", "week")
    ] + ["'auto'"]
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    assert page.get_attribute("#q", "aria-activedescendant") == "choice-4"
    page.keyboard.press("Enter")
    page.keyboard.type(" select tra")
    assert levels.all_inner_texts() == ["trades"]
    page.keyboard.press("Escape")
    expect(levels).to_have_count(0)
    page.keyboard.type("des, nosuch")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("[role=alert]")
    assert "unknown attribute 'nosuch'" in page.inner_text("[role=alert]")
    page.fill("#q", "explain from TradeAgg within '2018-01' per 'months' select trades")
    page.click("form button")
    page.wait_for_selector("text=What is read")


def test_a_view_is_kept_in_the_browser_under_its_name_until_it_is_removed(page: Page) -> None:
    page.goto(JANUARY + "&split=symbol")
    page.fill("#saved input", "<b>January</b>")
    page.click("#saved button")
    page.goto("/ask")
    page.fill("#q", "select 1 as a")
    page.fill("#saved input", "one")
    page.keyboard.press("Enter")
    page.reload()
    links = page.locator("#saved a")
    assert links.all_inner_texts() == ["<b>January</b>", "one"]
    links.first.click()
    page.wait_for_selector("#chart canvas")
    assert page.url.endswith(JANUARY + "&split=symbol")
    page.click("[aria-label='remove <b>January</b>']")
    page.click("#saved a")
    assert page.input_value("#q") == "select 1 as a"
    page.evaluate(
        "localStorage.setItem(localStorage.key(0), JSON.stringify({bad: 'javascript:alert(1)', no: '//else.where'}))"
    )
    page.reload()
    expect(page.locator("#saved form")).to_be_visible()
    expect(links).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "path",
    ["/", JANUARY + "&split=symbol", "/a/TradeAgg", "/s", "/ask?q=select+nosuch", "/ask?q=select+1+as+a", "/dead"],
)
@pytest.mark.few(6)
def test_axe_finds_nothing(browser: Browser, address: str, path: str, scheme: Any) -> None:
    page = browser.new_page(base_url=address, color_scheme=scheme, bypass_csp=True)
    page.goto(path)
    found = Axe().run(page)
    page.close()
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("path", ["/", JANUARY, "/s", "/ask", "/dead"])
def test_a_narrow_screen_scrolls_only_down(browser: Browser, address: str, path: str) -> None:
    page = browser.new_page(base_url=address, viewport={"width": 360, "height": 700})
    page.goto(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


def test_a_hostile_key_is_drawn_as_text(browser: Browser, tmp_path: Path) -> None:
    name = MARKUP.replace("'", "")
    with serving(stored(tmp_path, APP, [(name, 1.0, 1, at("2018-01-01T00:00:00"))])) as found:
        page = browser.new_page(base_url=found)
        ran = list[str]()
        page.on("dialog", lambda dialog: ran.append(dialog.message) or dialog.dismiss())
        page.goto("/explore/TradeAgg?measure=total&range=2018-01&split=symbol")
        page.wait_for_selector("#chart canvas")
        assert page.locator("img").count() == 0
        assert name[:20] in page.inner_text(".u-legend")
        assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("innerWidth"), (
            "ten thousand characters"
        )
        page.close()
        assert not ran
