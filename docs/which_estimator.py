"""The figure of the page "Which estimator?". Run by ``make picture``."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

QUESTION = {"boxstyle": "round,pad=0.6", "facecolor": "#eef2f7", "edgecolor": "#555f6e"}
ANSWER = {"boxstyle": "round,pad=0.6", "facecolor": "white", "edgecolor": "#0072B2", "linewidth": 2}
ELSEWHERE = {"boxstyle": "round,pad=0.6", "facecolor": "white", "edgecolor": "#D55E00", "linewidth": 2}
NODES = {
    "labels": (0.0, 3.0, "Thousands of labels,\nand only the error counts?", QUESTION),
    "read": (0.0, 2.0, "Will people read the model?", QUESTION),
    "paper": (0.0, 1.0, "The paper's method,\nor settings of your own?", QUESTION),
    "other": (2.6, 3.0, "boosting or extra trees\n(other libraries)", ELSEWHERE),
    "rules": (2.6, 2.0, "RuleRegressor()\ndsfr fit", ANSWER),
    "sfr": (2.6, 1.0, "SFRRegressor(), LapWNNRegressor()\ndsfr fit --method sfr-icr ...", ANSWER),
    "auto": (0.0, 0.0, "AutoSFRRegressor()\ndsfr fit --method auto", ANSWER),
}
EDGES = (
    ("labels", "other", "yes"),
    ("labels", "read", "no"),
    ("read", "rules", "yes"),
    ("read", "paper", "no"),
    ("paper", "sfr", "yes"),
    ("paper", "auto", "no: lowest error from few labels"),
)


def main() -> None:
    """Draw ``which-estimator.png`` beside this script."""
    figure, ax = plt.subplots(figsize=(9, 5.4), dpi=130, layout="constrained")
    arrow = {"arrowstyle": "-|>", "color": "#555f6e", "shrinkA": 32, "shrinkB": 32}
    for start, end, word in EDGES:
        (x0, y0, *_), (x1, y1, *_) = NODES[start], NODES[end]
        across = y0 == y1
        ends = ((x0 + 0.75, y0), (x1 - 0.95, y1)) if across else ((x0, y0), (x1, y1))
        ax.annotate("", ends[1], ends[0], arrowprops=arrow | ({"shrinkA": 0, "shrinkB": 0} if across else {}))
        place = ((ends[0][0] + ends[1][0]) / 2, y0 + 0.08) if across else (x0 + 0.06, (y0 + y1) / 2)
        ax.annotate(word, place, ha="center" if across else "left", va="bottom" if across else "center", fontsize=9)
    for x, y, text, box in NODES.values():
        ax.annotate(text, (x, y), ha="center", va="center", fontsize=10, bbox=box)
    ax.set(xlim=(-1.0, 3.8), ylim=(-0.45, 3.45))
    ax.set_axis_off()
    figure.savefig(Path(__file__).with_name("which-estimator.png"), metadata={"Software": None})


if __name__ == "__main__":
    main()
