"""The picture of a report page: the diabetes table, 120 known outcomes, three owners. Run by ``make picture``."""

import base64
import shutil
import tempfile
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from sklearn.datasets import load_diabetes

from dsfr import SFRRegressor
from dsfr.report import write_report
from dsfr.training import FuzzyRules

WIDTH, HEIGHT = 1180, 1150


def make_page(folder):
    """Train and write the page; returns its path."""
    table = load_diabetes(scaled=False, as_frame=True)
    X, truth = table.data[["age", "bmi", "bp", "s1", "s3", "s5"]], table.target.rename("progression")
    rng = np.random.default_rng(0)
    owners = rng.choice(["north", "east", "south"], len(X))
    few = truth.where(rng.permutation(len(X)) < 120)
    estimator = SFRRegressor(n_rules=3, rules=FuzzyRules(width_scale=1.5), ridge=1.0, random_state=0).fit(
        X, few, agents=owners
    )
    return write_report(estimator.model_, Path(folder) / "report.html", X, truth)


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
