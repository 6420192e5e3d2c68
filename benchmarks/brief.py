"""The four small tables of the README, from the stored results: accuracy, readability, speed, privacy."""

import re
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PEERS = ("GP ARD + linear", "extra trees", "CatBoost", "RidgeCV")
READABLE = {
    "rules": "`RuleRegressor`",
    "EBM": "EBM",
    "lasso": "lasso",
    "tree of 8 leaves": "tree of 8 leaves",
}
SPEED = (
    ("FCM, 5 clusters, fuzzifier 2", "scikit-fuzzy"),
    ("SFR-ICR, 5 agents, all labels", "HistGradientBoosting, all labels"),
    ("predict, 5 rules", "Ridge on H, H given"),
)


def accuracy() -> str:
    """Errors of peers over that of short rules, by number of labels."""
    text = (RESULTS / "accuracy_judged.txt").read_text()
    parts = re.split(r"\n(?=judged tables)", text)
    found = {}
    for part in parts:
        head = re.search(r"(\w+) labels: peers' NRMSE over that of rules, geometric mean over (\d+) tables", part)
        if head:
            found[head[1]] = dict(re.findall(r"^(\S.*?) {2,}([\d.]+) ", part, flags=re.MULTILINE)), head[2]
    header = [f"error over that of `RuleRegressor` at {_commit(text)}", *PEERS]
    rows = [
        [f"{labels} labels, {n_tables} tables", *(ratios.get(peer, "-") for peer in PEERS)]
        for labels, (ratios, n_tables) in found.items()
    ]
    return _table(header, rows)


def readability() -> str:
    """Error and what there is to read, with 50 labels."""
    whole = (RESULTS / "readable_judged.txt").read_text()
    text = whole.split("50 labels, judged tables")[1]
    rows = []
    for name, shown in READABLE.items():
        error, _, conditions, terms, _, seconds = re.search(rf"^{name} +(.*)$", text, flags=re.MULTILINE)[1].split()
        rows.append([shown, error, conditions, terms, seconds])
    header = ["error over that of `AutoSFRRegressor`", "conditions to read", "terms to read", "seconds"]
    return _table([f"50 labels, at {_commit(whole)}", *header], rows)


def speed() -> str:
    """Seconds on a million rows, beside other packages."""
    text = (RESULTS / "speed.txt").read_text()
    rows = []
    for work, against in SPEED:
        line = re.search(rf"^{re.escape(work)} +{re.escape(against)} +([\d.]+) +([\d.]+) ", text, flags=re.MULTILINE)
        rows.append([work, line[1], f"{line[2]} ({against})"])
    version = re.match(r"dsfr ([\d.]+)", text)[1]
    return _table(["seconds, a million rows x 8, two cores", f"dsfr {version}", "other"], rows)


def privacy() -> str:
    """What leaves an owner in one training."""
    lines = (RESULTS / "traffic.txt").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("training"))
    rows = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        name, *numbers = re.split(r" {2,}", line.strip())
        if not name.startswith("Auto"):
            rows.append([f"`{name}`" if name.endswith(")") else name, *numbers])
    header = [
        "one training over 5 owners",
        "rounds",
        "kB from an owner",
        "sums",
        "extremes",
        "parts seen by themselves",
    ]
    return _table(header, rows)


TABLES = {"accuracy": accuracy, "readability": readability, "speed": speed, "privacy": privacy}


def _commit(text: str) -> str:
    """Commit of the code that a stored result was measured with, from its first line."""
    return re.search(r"\b[0-9a-f]{7}\b", text.partition("\n")[0])[0]


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
