"""The picture of a report page: four measurements of wines, 50 known targets. Run by ``make picture``."""

import base64
import shutil
import tempfile
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from sklearn.datasets import load_wine

from dsfr import RuleRegressor
from dsfr.report import write_report

WIDTH, HEIGHT = 1180, 1370


def make_page(folder):
    """Train and write the page; returns its path."""
    wine = load_wine(as_frame=True).data
    X, truth = wine[["alcohol", "flavanoids", "hue"]], wine["color_intensity"]
    few = truth.where(np.random.default_rng(0).permutation(len(X)) < 50)
    return write_report(RuleRegressor(random_state=0).fit(X, few).model_, Path(folder) / "report.html", X, few)


def main() -> None:
    """Draw ``report.png`` beside this script."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    service = Service(shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory() as folder, webdriver.Chrome(options=options, service=service) as browser:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(make_page(folder).as_uri())
        picture = browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
    Path(__file__).with_name("report.png").write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main()
