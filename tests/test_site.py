"""The site of the documents asks nothing of the network, and its search works from files too."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
import time

import pytest

from tests.browser import chromium, requests_of
from tests.documents import ROOT

pytestmark = pytest.mark.slow  # the site takes half a minute to build
ELSEWHERE = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["']?https?://""")
OPEN_SEARCH = """
const toggle = document.querySelector("#__search");
toggle.checked = true;
toggle.dispatchEvent(new Event("change"));
document.querySelector("input.md-search__input").focus();
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_no_page_loads_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    assert [page.name for page in pages if ELSEWHERE.search(page.read_text())] == []


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def address(request, site):
    """Where the site is: its folder, or a server of this machine."""
    if request.param == "files":
        yield site.as_uri()
        return
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def links_found(browser, seconds=60.0):
    """Addresses of the results of a search, once there are some."""
    code = "return [...document.querySelectorAll('.md-search-result__item a')].map((link) => link.href)"
    deadline = time.monotonic() + seconds
    while not (found := browser.execute_script(code)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("address", ["files", "server"], indirect=True)
@pytest.mark.parametrize("page", ["index.html", "adr/0001-nan-means-unlabelled.html"])
def test_search_finds_pages_without_a_network(address, page):
    with chromium() as browser:
        browser.get(f"{address}/{page}")
        browser.execute_script(OPEN_SEARCH)
        browser.switch_to.active_element.send_keys("duplicate rows")
        found = links_found(browser)
        assert any("how-to.html" in link for link in found)
        asked = requests_of(browser)
    assert [url for url in asked if not url.startswith((address, "data:", "blob:", "about:", "chrome:"))] == []
