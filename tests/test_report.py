"""The report page in a real browser: it opens, computes what Python computes, filters, and keeps names as text."""

import html
import json
import re
from dataclasses import replace
from inspect import signature
from itertools import combinations

import networkx
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import dsfr
from dsfr import Absence, AutoSFRRegressor, Ensemble, Faults, InProcess, LapWNNRegressor, RuleRegressor, SFRRegressor
from dsfr.cli import main
from dsfr.core.explain.words import one_line
from dsfr.model.frames import encode_frame
from dsfr.report import ReportData, render, write_report
from dsfr.report.page import script_json
from dsfr.report.reproduce import reproduction_of
from dsfr.training import ADMM, ICR, FuzzyRules, RangeScaling
from tests import card_reader
from tests.browser import chromium, open_page, requests_of, wait_for_frames
from tests.tables import make_table, owners_of
from tests.test_explain import average_of, rows_of
from tests.test_rule_card import table

HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=1">',
    "</script><!-- {{payload}} &amp;\nzweite Zeile \u202e ü 🙂",
)


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def trained():
    X, y, hidden = make_table(0, n_rows=300)
    frame = pd.DataFrame(X, columns=["speed", "angle", "depth"])
    owners = owners_of(0, 300, 3)
    return SFRRegressor(random_state=0).fit(frame, pd.Series(hidden, name="noise"), agents=owners).model_, frame, y


def opened(browser, path):
    requests_of(browser)
    browser.get_log("browser")
    open_page(browser, path.as_uri())
    return browser


def column(browser, selector):
    return browser.execute_script("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector)


def test_the_page_opens_without_errors_or_requests(browser, trained, tmp_path):
    model, X, y = trained
    page = opened(browser, write_report(model, tmp_path / "r.html", X, y))
    assert page.title == "noise: a model in 5 rules"
    assert column(page, "nav a") == [
        "Summary",
        "What if",
        "Rules",
        "Sets",
        "Response",
        "Fit",
        "Training",
        *(["Notes"] if page.find_elements("css selector", "#notes-list li") else []),
        "Reproduce",
    ]
    page.execute_script("window.scrollTo(0, document.body.scrollHeight)")
    assert page.get_log("browser") == []
    assert {address.split(":")[0] for address in requests_of(page)} <= {"file", "data"}


def test_the_page_predicts_what_the_model_predicts(browser, trained, tmp_path):
    model, X, _ = trained
    page = opened(browser, write_report(model, tmp_path / "r.html"))
    rng = np.random.default_rng(0)
    low, high = X.min().to_numpy(), X.max().to_numpy()
    rows = np.vstack([X, low + (high - low) * rng.uniform(-1, 2, (500, 3)), 1e6 * rng.standard_normal((20, 3))])
    found = page.execute_script("return arguments[0].map(row => predict(model, row))", rows.tolist())
    scale = model.predictor.target_scale
    expected = model.predict(rows)
    assert np.max(np.abs(found - expected) / (scale + np.abs(expected))) <= 1e-9
    parts = page.execute_script("return arguments[0].map(row => contributions(model, row))", X[:50].to_numpy().tolist())
    for row, part in zip(X[:50].to_numpy(), parts, strict=True):
        explained = model.explain_prediction(row)
        assert part["start"] == pytest.approx(explained.start, rel=1e-12)
        assert part["firing"] == pytest.approx(explained.firing, rel=1e-9, abs=1e-9 * scale)
        np.testing.assert_allclose(
            part["features"], list(explained.contributions.values()), rtol=1e-9, atol=1e-9 * scale
        )


def test_a_page_of_several_rule_bases_predicts_their_average(browser, tmp_path):
    model = average_of(7)
    X = rows_of(7, model.predictor)
    page = opened(browser, write_report(model, tmp_path / "r.html", X, model.predict(X)))
    found = page.execute_script("return arguments[0].map(row => predict(model, row))", X.tolist())
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-9)
    strongest = len(model.predictor.shares)
    assert column(page, "#rule-count") == [f"{strongest} of {strongest} rules"]
    page.execute_script("const e = byId('rule-member'); e.value = ''; e.dispatchEvent(new Event('input'))")
    assert column(page, "#rule-count") == ["15 of 15 rules"]
    assert page.get_log("browser") == []


def test_the_page_shows_intervals_and_their_coverage(browser, tmp_path):
    model = average_of(7)
    X = rows_of(7, model.predictor)
    page = opened(browser, write_report(model, tmp_path / "r.html", X, model.predict(X)))
    assert column(page, "#coverage option") == ["50%", "80%", "90%", "95%"]
    for coverage in (0.9, 0.5):
        page.execute_script(
            "const e = byId('coverage'); e.value = arguments[0]; e.dispatchEvent(new Event('input'))", f"{coverage:.0%}"
        )
        low, high = map(float, re.findall(r"-?[\d.]+", column(page, "#interval-text")[0]))
        value = float(page.find_element("id", "prediction").get_attribute("data-value"))
        half = model.half_width(coverage)
        assert (low, high) == (pytest.approx(value - half, rel=1e-3), pytest.approx(value + half, rel=1e-3))
    assert "90% intervals hold 100.0% of them" in column(page, "#fit-hint")[0]


def test_sliders_move_the_prediction(browser, trained, tmp_path):
    model, _, _ = trained
    page = opened(browser, write_report(model, tmp_path / "r.html"))
    row = [3.25, 4.5, -20.0]
    for j, value in enumerate(row):
        field = page.find_element("id", f"number-{j}")
        field.clear()
        field.send_keys(str(value))
    shown = page.find_element("id", "prediction")
    assert float(shown.get_attribute("data-value")) == pytest.approx(model.predict([row])[0], rel=1e-12)
    assert float(shown.text) == pytest.approx(model.predict([row])[0], rel=1e-3)
    before = float(shown.get_attribute("data-value"))
    slider = page.find_element("id", "range-0")
    slider.send_keys("\ue014\ue014\ue014")  # arrow right: the page is usable without a mouse
    moved = page.execute_script("return state.row")
    assert moved[0] > row[0]
    assert float(shown.get_attribute("data-value")) == pytest.approx(model.predict([moved])[0], rel=1e-12) != before
    strengths = page.execute_script("return strengths(model, state.row)")
    np.testing.assert_allclose(strengths, model.explain_prediction(moved).parts.strengths, atol=1e-12)


def test_parts_of_rounding_have_no_bars(browser, tmp_path):
    """At the typical row nothing moves the prediction of one rule away from its mean."""
    X = np.random.default_rng(0).uniform(20.0, 200.0, (60, 2))
    model = RuleRegressor(random_state=0).fit(X, 0.3 - 0.003 * X[:, 0]).model_
    page = opened(browser, write_report(model, tmp_path / "r.html"))
    parts = """return [...document.querySelectorAll("#contributions .meter:has(.fill)")]
      .map((row) => [row.querySelector(".value").innerText, parseFloat(row.querySelector(".fill").style.width)])"""
    found = page.execute_script(parts)
    assert len(found) == 3
    assert all(width == 0.0 for text, width in found if text == "0")
    assert "0" in [text for text, _ in found]


def test_cards_say_what_the_model_says(browser, trained, tmp_path):
    model, X, y = trained
    page = opened(browser, write_report(model, tmp_path / "r.html", X, y))
    cards = page.find_elements("css selector", ".card")
    for rule, card in zip(model.explain(X), cards, strict=True):
        said = " ".join(card.text.split())
        assert f"Rule {rule.number} {rule.share:.0%} of rows" in said
        for line in rule.conditions():
            assert " ".join(line.split()) in said
        assert " ".join(rule.consequent().split()) in said
    tiles = " ".join(column(page, "#tiles")[0].split())
    assert "Training rows 300 30 labelled" in tiles
    agents = column(page, "#agents-table tbody td:first-child")
    assert agents == ["site-0", "site-1", "site-2"]
    sent = [float(cell.replace(",", "")) for cell in column(page, "#agents-table tbody td:last-child")]
    assert sent == [round(entry["bytes_sent"] / 1e3, 1) for entry in model.training["agents"]]


def test_rules_are_filtered_and_sorted(browser, trained, tmp_path):
    model, X, y = trained
    page = opened(browser, write_report(model, tmp_path / "r.html", X, y))
    rules = model.explain(X)

    def choose(name, value):
        page.execute_script(
            "const e = byId(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('input'))",
            name,
            value,
        )
        return [int(text.removeprefix("Rule ")) for text in column(page, ".card h3")]

    assert choose("rule-sort", "share") == [rule.number for rule in sorted(rules, key=lambda rule: -rule.share)]
    assert choose("rule-sort", "mean") == [rule.number for rule in sorted(rules, key=lambda rule: -rule.mean_output)]
    choose("rule-sort", "number")
    assert choose("rule-feature", "1") == [rule.number for rule in rules if rule.matters[1]]
    wanted = [rule.number for rule in rules if rule.matters[1] and rule.labels[1] == "low"]
    assert choose("rule-label", "low") == wanted
    assert column(page, "#rule-count") == [f"{len(wanted)} of 5 rules"]
    choose("rule-label", "")
    choose("rule-feature", "")
    assert choose("rule-search", "nothing is called this") == []
    page.find_element("id", "rule-search").clear()
    page.find_element("id", "rule-search").send_keys("RULE 3 (")
    assert column(page, ".card h3") == ["Rule 3"]


def test_hostile_names_stay_text(browser, trained, tmp_path):
    model, X, y = trained
    named = model.renamed(HOSTILE, "<b onclick=alert(1)>price</b>")
    page = opened(browser, write_report(named, tmp_path / "r.html", X.to_numpy(), y))
    assert page.title == "<b onclick=alert(1)>price</b>: a model in 5 rules"
    assert page.get_log("browser") == []
    assert page.find_elements("css selector", "img, b[onclick]") == []
    # As Python prints them: a name that turns the direction of writing would turn what stands beside it.
    shown = list(map(one_line, HOSTILE))
    assert "\u202e" not in "".join(shown)
    assert page.execute_script("return model.features") == shown
    assert (
        page.execute_script("return [...document.querySelectorAll('#set-feature option')].map(o => o.textContent)")
        == shown
    )
    assert len(page.find_elements("css selector", "body script")) == 2
    assert {address.split(":")[0] for address in requests_of(page)} <= {"file", "data"}


def test_long_names_and_many_rules_fit_a_phone(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 12))
    names = [f"a name that goes on and on and on, of feature number {j} (units per square metre)" for j in range(12)]
    model = SFRRegressor(n_rules=30, random_state=0).fit(X, X[:, 0]).model_.renamed(names, "a target with a long name")
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page = opened(browser, write_report(model, tmp_path / "r.html", X, X[:, 0]))
        assert page.execute_script("return document.documentElement.scrollWidth") <= 360
        cut = """return [...document.querySelectorAll("svg text")].filter((text) => {
          const box = text.getBoundingClientRect(), room = text.ownerSVGElement.getBoundingClientRect();
          return box.left < room.left - 1 || box.right > room.right + 1;
        }).map((text) => text.textContent)"""
        assert page.execute_script(cut) == []
        parts = "return [...document.querySelectorAll('#contributions .name')].map((name) => name.clientHeight)"
        assert max(page.execute_script(parts)) > 40  # on several lines: cut to one, all names would read alike
        numbers = """return [...document.querySelectorAll("#set-chart text[style]")].map((text) => {
          const box = text.getBoundingClientRect();
          return [box.left, box.top, box.right, box.bottom];
        })"""
        boxes = page.execute_script(numbers)
        overlaps = [(a, b) for a, b in combinations(boxes, 2) if a[0] < b[2] and b[0] < a[2] and abs(a[1] - b[1]) < 8]
        assert overlaps == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_page_fits_a_phone_and_both_colours(browser, trained, tmp_path):
    model, X, y = trained
    path = write_report(model, tmp_path / "r.html", X, y)
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page = opened(browser, path)
        assert page.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    wait_for_frames(browser)  # a click goes to the place that the button had when the browser was asked
    background = "return getComputedStyle(document.body).backgroundColor"
    button = page.find_element("id", "theme")
    colours = {}
    for _ in range(3):
        button.click()
        colours[button.get_attribute("data-name")] = page.execute_script(background)
    assert colours["light"] != colours["dark"]
    printed = page.execute_cdp_cmd("Page.printToPDF", {})
    assert len(printed["data"]) > 10_000


COVERED = """
document.querySelectorAll("details").forEach((details) => { details.open = true; });
const kinds = ["main button", "main select", "main input", "main summary", "main a", "header button", "nav a"];
const controls = [...document.querySelectorAll(kinds.join())];
return controls.filter((control) => control.checkVisibility()).filter((control) => {
  control.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const box = control.getBoundingClientRect();
  const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return !(hit && (control.contains(hit) || hit.contains(control)));
}).map((control) => control.id || control.textContent)
"""


@pytest.mark.parametrize("width", [390, 800, 1280])
@pytest.mark.parametrize("look", ["light", "dark", "print"])
def test_nothing_covers_a_control(browser, pages, width, look):
    media = {"media": "print"} if look == "print" else {"features": [{"name": "prefers-color-scheme", "value": look}]}
    metrics = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        for path in pages.values():
            page = opened(browser, path)
            assert page.execute_script("return document.querySelectorAll('#inputs input').length") > 0
            assert page.execute_script(COVERED) == [], path.name
            if look != "print":  # paper is wider than a phone
                assert page.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


@pytest.fixture(scope="module")
def pages(trained, tmp_path_factory):
    """A page of rules with centers, of three owners; one of short rules, of one owner; one of 40 columns."""
    folder = tmp_path_factory.mktemp("pages")
    model, frame, y = trained
    X, _, known = table(4, n=300, n_labels=60)
    short = dsfr.RuleRegressor(random_state=0).fit(X, known).model_.renamed(["age", "dose", "sex", "other"], "risk")
    wide = np.random.default_rng(0).normal(size=(80, 40))
    many = SFRRegressor(n_rules=12, random_state=0).fit(wide, wide[:, 7]).model_
    return {
        "owners": write_report(model, folder / "owners.html", frame, y),
        "short": write_report(short, folder / "short.html", X, known),
        "wide": write_report(many, folder / "wide.html", wide, wide[:, 7]),
    }


def test_short_rules_are_drawn_as_a_tree_with_their_words(browser, pages):
    page = opened(browser, pages["short"])
    leaves = column(page, ".tree .leaf b")
    assert leaves == column(page, "#cards h3")
    inputs = {text.split("\n")[0] for text in column(page, ".tree .node:not(.leaf)")}
    words = [text.removeprefix("What the words on ").removesuffix(" mean") for text in column(page, "#words h3")]
    assert inputs == set(words)
    drawn = page.execute_script("return [...document.querySelectorAll('#words svg')].map((e) => e.innerHTML.length)")
    assert len(drawn) == len(words)
    page.execute_script("document.querySelector('.tree .leaf').click()")
    place = page.execute_script(
        "return document.querySelector('[data-rule]').getBoundingClientRect().top / innerHeight"
    )
    assert 0.0 <= place < 1.0


@pytest.fixture(scope="module")
def shared():
    """Rules that bend along one input, with three slopes that all of them share; and rows."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 4))
    y = 6.0 * np.abs(X[:, 0]) + X[:, 1:] @ [2.0, -3.0, 1.0]
    frame = pd.DataFrame(X, columns=["age", "dose", "speed", "depth"])
    known = pd.Series(np.where(np.arange(400) < 60, y, np.nan))
    return RuleRegressor(tolerance=0.01, random_state=0).fit(frame, known), frame


def printed_by(page, words):
    """The rules as the page shows them, as text that `card_reader` reads; the words are drawn, and given."""
    parts = ["Words", *(f"  {meaning}" for meaning in words)]
    parts += ["Limits", *(f"  {text}" for text in column(page, "#limits li"))]
    parts += column(page, "#shared-title") + [f"  {text}" for text in column(page, "#shared-terms")]
    cards = page.find_elements("css selector", "#cards .card")
    for card in cards:
        clauses = [" ".join(item.text.split()) for item in card.find_elements("css selector", ".conditions li")]
        line = " ".join(card.find_element("css selector", ".then").text.split())
        parts += [f"  {' '.join(clauses)}", f"  {line}"]
    return "\n".join(parts)


def test_the_page_of_short_rules_is_the_printed_text(browser, shared, tmp_path):
    fitted, frame = shared
    card = fitted.rules_
    assert fitted.complexity_["shared_terms"] >= 2
    page = opened(browser, write_report(fitted.model_, tmp_path / "r.html", frame))
    read = card_reader.predict(printed_by(page, card.meanings()), {name: frame[name].to_numpy() for name in frame})
    np.testing.assert_allclose(read, fitted.predict(frame), rtol=1e-9, atol=1e-9)
    counted = len(page.find_elements("css selector", ".conditions li, .then > span, #shared-terms span")) + len(card)
    tiles = dict(zip(column(page, "#tiles dt"), column(page, "#tiles dd"), strict=True))
    assert counted == card.to_read == int(tiles["To read"].split()[0])
    assert card.to_read == sum(fitted.complexity_[name] for name in ("rules", "conditions", "terms"))
    assert column(page, "#limits li") == [*card.limits(), *card.errors()]
    assert column(page, ".then .named") == ["+ shared part"] * len(card)


def test_rules_without_a_shared_part_have_no_place_for_it(browser, trained, tmp_path):
    model, frame, _ = trained
    page = opened(browser, write_report(model, tmp_path / "r.html", frame))
    assert not any(element.is_displayed() for element in page.find_elements("css selector", "#shared, #limits"))


@pytest.mark.parametrize(("name", "is_shown"), [("owners", True), ("short", False)])
def test_one_owner_has_no_tiles_and_tables_of_a_federation(browser, pages, name, is_shown):
    page = opened(browser, pages[name])
    tiles = column(page, "#tiles dt")
    for tile in ("Agents", "Rounds"):
        assert (tile in tiles) == is_shown
    for part in ("ledger", "agents"):
        assert page.find_element("id", part).is_displayed() == is_shown


def test_the_caveat_stands_between_the_tiles_and_the_rest(browser, pages):
    for name, text in (("owners", "30 labels determine"), ("short", "learnt from 60 labels")):
        page = opened(browser, pages[name])
        if text in " ".join(column(page, "#caveats")):
            tops = [page.find_element("id", part).rect["y"] for part in ("tiles", "caveats", "what-if", "rules")]
            assert tops[0] < tops[1] < min(tops[2:])
        else:
            assert name == "owners", "short rules say from how many labels they were learnt"


def test_many_columns_show_the_relevant_ones_and_the_others_on_demand(browser, pages):
    page = opened(browser, pages["wide"])
    assert page.execute_script("return model.order[0]") == 7
    shown = "return [...document.querySelectorAll('#inputs .input')].filter((e) => e.checkVisibility()).length"
    assert page.execute_script(shown) == 12
    page.execute_script("document.querySelector('#inputs summary').click()")
    assert page.execute_script(shown) == 40
    assert (
        max(page.execute_script("return [...document.querySelectorAll('p.then')].map((p) => p.children.length)")) <= 13
    )


def test_more_than_ten_rules_are_intervals_and_not_crossing_curves(browser, pages):
    page = opened(browser, pages["wide"])
    assert page.execute_script("return document.querySelectorAll('#set-chart path').length") == 0
    assert page.execute_script("return document.querySelectorAll('#set-chart circle').length") == 12
    few = opened(browser, pages["owners"])
    assert few.execute_script("return document.querySelectorAll('#set-chart path').length") == 5


def test_plots_can_be_read_with_the_keyboard(browser, trained, tmp_path):
    model, X, y = trained
    page = opened(browser, write_report(model, tmp_path / "r.html", X, y))
    page.execute_script("document.querySelector('#response-chart svg').focus()")
    before = column(page, "#response-readout")
    page.switch_to.active_element.send_keys("\ue014\ue014")
    after = column(page, "#response-readout")
    assert before != after
    value, target = re.search(r": noise ([-\d.e]+)", after[0]), page.execute_script("return state.row")
    chosen = "return inputColumns()[Number(byId('response-feature').value)].features[0]"
    j = page.execute_script(chosen)
    target[j] = float(re.search(rf"{X.columns[j]} ([-\d.e]+):", after[0])[1])
    assert float(value[1]) == pytest.approx(model.predict([target])[0], rel=5e-3)


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), lambda inner: st.lists(inner)))
def test_json_in_a_script_element_reads_back_and_cannot_end_it(value):
    text = script_json(value)
    assert json.loads(text) == value
    assert "<" not in text


def test_the_feature_that_moves_predictions_most_is_shown_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1.0, 1e-3, 100.0]
    model = SFRRegressor(random_state=0).fit(X, X @ [1.0, 5000.0, 1e-3]).model_
    data = ReportData.of(X, None, model)
    for rows in (None, data):
        page = re.search(r'id="model">(.*?)</script>', render(model, rows), flags=re.DOTALL)[1]
        assert json.loads(page)["order"] == [1, 0, 2]


@given(names=st.lists(st.text(min_size=1), min_size=3, max_size=3, unique=True), target=st.text(min_size=1))
def test_any_names_leave_the_page_s_elements_as_they_are(trained, names, target):
    plain, named = (render(model) for model in (trained[0], trained[0].renamed(names, target)))
    assert re.findall(r"<\w+", named) == re.findall(r"<\w+", plain)
    payload = re.search(r'id="model">(.*?)</script>', named, flags=re.DOTALL)[1]
    assert json.loads(payload)["features"] == list(map(one_line, names))


def notes_of_page(page):
    return [note["text"] for note in json.loads(re.search(r'id="model">(.*?)</script>', page)[1])["notes"]]


def test_a_note_tells_of_rows_a_little_outside_and_of_none_at_the_edge(trained):
    model, *_ = trained
    ranges = model.predictor.ranges
    edge = np.vstack([ranges.low, ranges.high])
    at_edge, beyond = (
        notes_of_page(render(model, ReportData.of(rows, None, model)))
        for rows in (edge, edge + 0.01 * np.diff(edge, axis=0))
    )
    assert not any("outside the ranges of training" in note for note in at_edge)
    assert any(note.startswith("1 of 2 rows lie outside the ranges of training") for note in beyond)


@pytest.mark.parametrize(("n_labels", "warned"), [(15, True), (100, False)])
def test_a_note_tells_of_fewer_labels_than_weights(n_labels, warned):
    X, _, y = make_table(0, n_labels=n_labels)
    model = SFRRegressor(n_rules=5, random_state=0).fit(X, y).model_
    said = f"{n_labels} labels determine 20 weights"
    page = json.loads(re.search(r'id="model">(.*?)</script>', render(model))[1])
    assert any(note.startswith(said) for note in page["caveats"]) == warned


def test_notes_tell_what_is_wrong_with_the_data(trained):
    model, X, y = trained
    odd = X.to_numpy().copy()
    odd[0, 0], odd[1, 2], odd[3], odd[4, 1] = np.nan, 1e9, odd[2], 5e3
    page = render(model, ReportData.of(odd, np.where(np.arange(300) < 100, np.nan, y), model))
    notes = notes_of_page(page)
    for text in (
        "1 rows of the data lack some feature",
        "2 of 299 rows lie outside the ranges of training, in depth (1), angle (1)",
        "1 rows of the data repeat the inputs of another row",
        "99 of 299 rows of the data are unlabelled",
    ):
        assert any(note.startswith(text) for note in notes), (text, notes)
    assert "Made without data" in html.unescape(render(model))


RING = InProcess(topology="ring")
GRAPH = networkx.path_graph(3)
LOSSES = Faults(absences=[Absence("site-1", 4, 6)], loss=0.1, seed=2)


@pytest.mark.parametrize(
    ("estimator", "split"),
    [
        (SFRRegressor(), False),
        (SFRRegressor(n_agents=3), True),
        (SFRRegressor(solver="sums", unlabeled="graph"), False),
        (SFRRegressor(scaling=RangeScaling(lower=[-9] * 3, upper=[999] * 3)), False),
        (SFRRegressor(solver=ADMM(max_rounds=30), unlabeled=ICR(n_pairs=50), precision="single"), False),
        (SFRRegressor(solver="few-rounds", tune="evidence", rules=FuzzyRules(fuzzifier=1.5)), False),
        (SFRRegressor(solver="decentralized", engine=RING), False),
        (SFRRegressor(solver="decentralized", engine=InProcess(topology=GRAPH)), False),
        (SFRRegressor(engine=InProcess(topology="erdos-renyi"), n_agents=4), True),
        (SFRRegressor(engine=InProcess(topology=[("site-0", "site-1"), ("site-0", "site-2")], faults=LOSSES)), False),
        (SFRRegressor(tune="loo", uncertainty=True), False),
        (AutoSFRRegressor(ensemble=Ensemble(n_models=2), unlabeled=None), False),
        (AutoSFRRegressor(ensemble=Ensemble(n_models=1), tune=None, uncertainty=False, solver="conjugate"), True),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", re.sub(r"\s+", " ", repr(value))),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_code_to_reproduce_trains_the_same_model(estimator, split, tmp_path):
    X, _, y = make_table(1)
    owners = None if split else owners_of(1, 120, 3)
    fitted = estimator.set_params(random_state=5).fit(X, y, agents=owners)
    model = fitted.model_
    for told in (model, dsfr.load(model.save(tmp_path / "m.dsfr"))):
        payload = json.loads(re.search(r'id="model">(.*?)</script>', render(told))[1])
        namespace = {"X": X, "y": y, "owners": owners}
        code = payload["reproduce"]["code"]
        exec(code, namespace)
        np.testing.assert_array_equal(namespace["model"].predict(X), model.predict(X))
        defaults = clone(estimator).set_params(random_state=5)
        given = [name for name in signature(type(estimator)).parameters if re.search(rf"[( ]{name}=", code)]
        for name in given:  # what is written is not the default
            assert repr(getattr(defaults, name)) != repr(signature(type(estimator)).parameters[name].default), name


@pytest.mark.parametrize(
    "teacher", [None, AutoSFRRegressor(ensemble=Ensemble(n_models=1, effects=None)), SFRRegressor(ridge=0.5)]
)
def test_the_code_to_reproduce_short_rules_trains_them(teacher):
    X, _, y = make_table(1)
    estimator = dsfr.RuleRegressor(max_rules=3, teacher=teacher, edits={"x0": {"slope": "+"}}, random_state=0)
    model = estimator.fit(X, y).model_
    namespace = {"X": X, "y": y}
    exec(reproduction_of(model), namespace)
    np.testing.assert_array_equal(namespace["model"].predict(X), model.predict(X))


def test_a_random_state_that_was_drawn_can_be_reproduced():
    X, _, y = make_table(1)
    model = SFRRegressor(n_agents=2, random_state=np.random.RandomState(3)).fit(X, y).model_
    namespace = {"X": X, "y": y}
    exec(reproduction_of(model), namespace)
    np.testing.assert_array_equal(namespace["model"].predict(X), model.predict(X))


def test_a_person_would_write_the_code_to_reproduce():
    X, _, y = make_table(1)
    solver = ADMM(acceleration=None, penalty=0.1)
    model = SFRRegressor(n_rules=3, unlabeled="icr", solver=solver, random_state=0).fit(
        X, y, agents=owners_of(1, 120, 2)
    )
    assert reproduction_of(model.model_) == (
        "from dsfr import ADMM, SFRRegressor\n\n"
        "model = SFRRegressor(\n    n_rules=3,\n    solver=ADMM(penalty=0.1, acceleration=None),\n    random_state=0,\n"
        ").fit(X, y, agents=owners)"
    )
    assert reproduction_of(SFRRegressor(solver="conjugate", random_state=1).fit(X, y).model_) == (
        "from dsfr import SFRRegressor\n\nmodel = SFRRegressor(random_state=1).fit(X, y)"
    )


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"estimator": "os"},
        {"estimator": "SFRRegressor", "solver": {"kind": "Magic"}},
        {"estimator": "SFRRegressor", "solver": {"kind": "ADMM", "tol": -1}},
        {"estimator": "SFRRegressor", "solver": {"kind": "ADMM", "wish": 1}},
        {"estimator": "SFRRegressor", "solver": {"kind": "ICR"}},
        {"estimator": "SFRRegressor", "solver": 3},
        {"estimator": "SFRRegressor", "engine": {"kind": "InProcess", "faults": {"kind": "Faults", "loss": "x"}}},
    ],
)
def test_settings_of_a_file_that_nobody_knows_give_no_code(trained, stored):
    model = replace(trained[0], settings=stored)
    assert reproduction_of(model) == ""
    assert "does not know the estimator" in html.unescape(render(model))


def test_data_that_do_not_fit_are_refused(trained):
    model, X, y = trained
    for given_X, given_y, message in (
        (X.drop(columns="angle"), None, "lacks the column"),
        (np.ones((3, 2)), None, "needs 3 columns"),
        (X, y[:5], "one target for each"),
        (np.full((2, 3), np.nan), None, "no row is complete"),
    ):
        with pytest.raises(ValueError, match=message):
            ReportData.of(given_X, given_y, model)


def test_the_command_writes_the_page(trained, tmp_path):
    model, X, y = trained
    path, data, out = model.save(tmp_path / "m.dsfr"), tmp_path / "t.csv", tmp_path / "r.html"
    X.assign(noise=y).to_csv(data, index=False)

    def run(*arguments):
        return CliRunner().invoke(main, ["report", *map(str, arguments)])

    assert run(path, data, "-o", out).exit_code == 0
    assert out.read_text() == render(model, ReportData.of(X.set_index(X.index + 1), y, model))
    assert run(path, "-o", out).exit_code == 0
    assert out.read_text() == render(model)
    assert "is an input file" in run(path, data, "-o", data).output
    X.drop(columns="speed").to_csv(data, index=False)
    refused = run(path, data, "-o", out)
    assert refused.exit_code == 2
    assert "lacks the column(s) speed" in refused.output


def test_wavelets_have_no_page(tmp_path):
    X, _, y = make_table(0)
    with pytest.raises(ValueError, match="wavelets, not rules"):
        write_report(LapWNNRegressor(random_state=0).fit(X, y).model_, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_short_rules_computes_what_python_computes(browser, tmp_path):
    X, _, known = table(4, n=300, n_labels=60)
    names = ["age", "dose <b>", "sex", "other"]
    frame = pd.DataFrame(X, columns=names)
    fitted = dsfr.RuleRegressor(random_state=0).fit(frame, pd.Series(known, name="y"))
    page = opened(browser, write_report(fitted.model_, tmp_path / "r.html", frame, known))
    assert column(page, "nav a")[:4] == ["Summary", "Rules", "Price", "What if"]
    rows = np.append(X[:40], X[:5] * 3.0, axis=0)
    found = page.execute_script("return arguments[0].map((row) => predict(model, row))", rows.tolist())
    np.testing.assert_allclose(found, fitted.predict(pd.DataFrame(rows, columns=names)), rtol=1e-12, atol=1e-12)
    fired = page.execute_script("return arguments[0].map((row) => strengths(model, row))", rows.tolist())
    np.testing.assert_allclose(np.sum(fired, axis=1), 1.0, atol=1e-12)
    parts = page.execute_script(
        "const p = contributions(model, arguments[0]); return p.features.reduce((a, b) => a + b, p.start + p.firing)",
        X[0].tolist(),
    )
    assert parts == pytest.approx(fitted.predict(frame[:1])[0], rel=1e-9)
    cards = column(page, "#cards article")
    assert len(cards) == len(fitted.rules_)
    assert page.get_log("browser") == []
    alone = opened(browser, write_report(fitted.model_, tmp_path / "alone.html"))
    assert alone.get_log("browser") == []


@pytest.mark.parametrize("kind", ["auto", "rules", "sfr", "bell"])
def test_unknown_inputs_are_predicted_as_missing_values_are(browser, tmp_path, kind):
    X, _, y = make_table(3, n_rows=90, n_features=4, n_labels=40)
    estimators = {
        "auto": dsfr.AutoSFRRegressor(ensemble=dsfr.Ensemble(n_models=2, effects="pairs"), random_state=0),
        "rules": dsfr.RuleRegressor(
            4, teacher=dsfr.AutoSFRRegressor(ensemble=dsfr.Ensemble(n_models=0)), random_state=0
        ),
        "sfr": dsfr.SFRRegressor(3, random_state=0),
        "bell": dsfr.SFRRegressor(3, rules=dsfr.FuzzyRules(membership="bell"), random_state=0),
    }
    model = estimators[kind].fit(X, y).model_
    page = opened(browser, write_report(model, tmp_path / "r.html"))
    gaps = np.random.default_rng(0).random(X.shape) < 0.4
    gaps[0], gaps[1] = True, False
    rows = np.where(gaps, np.nan, X)
    sent = [[None if np.isnan(value) else value for value in row] for row in rows.tolist()]
    found = page.execute_script("return arguments[0].map((row) => predict(model, row))", sent)
    scale = np.ptp(model.predict(X))
    np.testing.assert_allclose(found, model.predict(rows), atol=1e-9 * scale)
    if model.mixture.scores is not None:
        inputs = page.execute_script("return arguments[0].map((row) => inputDeviation(model, row))", sent)
        np.testing.assert_allclose(inputs, model.deviation_parts(rows).inputs, atol=1e-7 * scale)
    if kind == "rules":
        ends = page.execute_script("return arguments[0].map((row) => interval(model, row, '80%'))", sent)
        np.testing.assert_allclose(np.transpose(ends), model.interval(rows, 0.8), atol=1e-6 * scale)
    before = page.execute_script("return [...state.row]")
    page.execute_script("byId('unknown-2').click()")
    shown = float(page.find_element("id", "prediction").get_attribute("data-value"))
    asked = np.where(np.arange(4) == 2, np.nan, before)
    assert shown == pytest.approx(model.predict([asked])[0], abs=1e-9 * scale)
    np.testing.assert_allclose(page.execute_script("return state.row"), model.completed([asked])[0], rtol=1e-9)
    assert not page.find_element("id", "range-2").is_enabled()
    page.execute_script("byId('reset').click()")
    assert page.find_element("id", "range-2").is_enabled()
    assert page.get_log("browser") == []


@pytest.mark.parametrize("kind", ["auto", "rules", "bell"])
def test_unknown_levels_and_what_they_contribute_are_those_of_python(browser, tmp_path, kind):
    rng = np.random.default_rng(5)
    n, levels = 120, ["east", "north", "south"]
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "region": rng.choice(levels, n)})
    X["sex"] = rng.choice(["f", "m"], n)
    X["c"] = X.a + 0.3 * rng.normal(size=n)
    y = 2.0 * X.a + X.b**2 + 3.0 * (X.region == "north") - (X.sex == "m")
    effects = dsfr.AutoSFRRegressor(ensemble=dsfr.Ensemble(n_models=0))
    estimators = {
        "auto": dsfr.AutoSFRRegressor(ensemble=dsfr.Ensemble(n_models=2, effects="pairs"), random_state=0),
        "rules": dsfr.RuleRegressor(5, teacher=effects, random_state=0),
        "bell": dsfr.SFRRegressor(3, rules=dsfr.FuzzyRules(membership="bell"), random_state=0),
    }
    trained = X.mask(rng.random(X.shape) < 0.15) if kind == "auto" else X  # then expected indicators have a weight
    model = estimators[kind].fit(trained, y).model_
    page = opened(browser, write_report(model, tmp_path / "r.html"))
    rows = X.mask(rng.random(X.shape) < 0.4)[:25]
    sent = [[None if np.isnan(value) else value for value in row] for row in encode_frame(rows, model.columns).tolist()]
    found = page.execute_script("return arguments[0].map((row) => contributions(model, row))", sent)
    predicted = page.execute_script("return arguments[0].map((row) => predict(model, row))", sent)
    scale = np.ptp(model.predict(X))
    np.testing.assert_allclose(predicted, model.predict(rows), atol=1e-9 * scale)
    for i, own in enumerate(found):
        explained = model.explain_prediction(rows[i : i + 1])
        np.testing.assert_allclose(own["features"], explained.parts.by_feature, atol=1e-9 * scale)
        np.testing.assert_allclose(own["strengths"], explained.parts.strengths, atol=1e-9)
        assert own["firing"] == pytest.approx(explained.firing, abs=1e-9 * scale)
    if model.mixture.scores is not None:
        inputs = page.execute_script("return arguments[0].map((row) => inputDeviation(model, row))", sent)
        np.testing.assert_allclose(inputs, model.deviation_parts(rows).inputs, atol=1e-7 * scale)
        low, high = model.interval(rows[:1])
        if kind == "rules":  # there the interval of a row does not depend on the row, but for what is unknown
            ends = page.execute_script("return interval(model, arguments[0], '90%')", sent[0])
            np.testing.assert_allclose(ends, [low[0], high[0]], atol=1e-7 * scale)
    number = page.execute_script("return model.categories.findIndex((entry) => entry.name === 'region')")
    page.execute_script(f"byId('unknown-level-{number}').click()")
    assert not page.find_element("id", f"level-{number}").is_enabled()
    assert "region (unknown)" in page.find_element("id", "contributions").text
    page.execute_script(f"byId('unknown-level-{number}').click()")
    assert page.find_element("id", f"level-{number}").is_enabled()
    assert "(unknown)" not in page.find_element("id", "contributions").text
    assert page.get_log("browser") == []
