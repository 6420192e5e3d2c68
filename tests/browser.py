"""Headless Chromium for tests of pages; whoever has none sees these tests skipped, with the reason."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def chromium() -> Iterator[object]:
    """A browser that logs its console and its requests."""
    webdriver = pytest.importorskip("selenium.webdriver")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no chromium and chromedriver on this machine (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,900",
        "--force-prefers-reduced-motion",  # no smooth scrolling: a click finds its place at once
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=service.Service(driver))
    try:
        yield opened
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            opened.quit()


def open_page(browser, address: str) -> None:
    """Open a page and wait until it is drawn: charts are drawn when their width is known, after the page is loaded."""
    browser.get(address)
    wait_for_frames(browser)


def wait_for_frames(browser) -> None:
    """Wait until the browser has laid out and drawn the page as it is now; observers of sizes have run then."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    )


def requests_of(browser) -> list[str]:
    """Addresses asked for since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
