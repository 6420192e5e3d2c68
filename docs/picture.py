"""The picture of the theory page: three owners, eighteen labels, five rules. Run by ``make picture``."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from dsfr import SFRRegressor
from dsfr.training import ICR, FuzzyRules

OWNERS = {"north": "#0072B2", "east": "#D55E00", "south": "#009E73"}  # colour-blind safe (Okabe and Ito)
RULE_COLORS = plt.get_cmap("viridis")(np.linspace(0.05, 0.8, 5))


def make_data(rng):
    """Owners see different parts of the axis, and overlap a little."""
    places = {"north": (0.0, 4.5), "east": (3.0, 7.5), "south": (6.0, 10.0)}
    owners = np.repeat(list(places), 120)
    x = np.concatenate([rng.uniform(*place, 120) for place in places.values()])
    truth = 8.0 + 3.0 * np.sin(x) + 0.8 * x
    y = np.full(len(x), np.nan)
    for owner in places:
        known = rng.choice(np.flatnonzero(owners == owner), 6, replace=False)
        y[known] = truth[known] + 0.2 * rng.standard_normal(6)
    return x, y, owners


def main() -> None:
    """Draw ``rules.png`` beside this script."""
    x, y, owners = make_data(np.random.default_rng(5))
    model = SFRRegressor(
        n_rules=5, rules=FuzzyRules(width_scale=1.4), unlabeled=ICR(weight=1e-3), ridge=1e-2, random_state=0
    )
    model.fit(x[:, None], y, agents=owners)
    grid = np.linspace(0, 10, 600)

    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(8, 4.6), dpi=150, sharex=True, height_ratios=[3, 1.25], layout="constrained"
    )
    for color, rule in zip(RULE_COLORS, sorted(model.rules_, key=lambda r: r.centers[0]), strict=True):
        center, width = rule.centers[0], rule.widths[0]
        near = grid[np.abs(grid - center) < 1.3 * width]
        top.plot(near, rule.intercept + rule.coefficients[0] * near, color=color, lw=5, alpha=0.3)
        membership = np.exp(-(((grid - center) / width) ** 2))
        bottom.fill_between(grid, membership, color=color, alpha=0.3, lw=0)
        bottom.plot(grid, membership, color=color, lw=1.5)
        bottom.annotate(f"about {center:.1f}", (center, 1.06), ha="center", fontsize=8, color=color)
    top.plot(grid, model.predict(grid[:, None]), color="black", lw=2, label="the model they agree on")
    for (owner, color), level in zip(OWNERS.items(), (3.3, 2.6, 1.9), strict=True):
        mine = owners == owner
        known = mine & ~np.isnan(y)
        top.plot(x[known], y[known], "o", color=color, ms=7, mec="white", label=f"{owner}: 6 labelled rows")
        top.plot(x[mine & ~known], np.full((mine & ~known).sum(), level), "|", color=color, ms=7, alpha=0.6)
    top.annotate("unlabelled rows, each with its owner", (0.05, 3.95), fontsize=8, color="0.35")
    top.set(
        ylabel="target",
        ylim=(1.3, 19.8),
        title="Five if-then rules from 18 labels and 342 unlabelled rows of three owners",
    )
    top.legend(loc="upper left", fontsize=8, frameon=False, ncols=2)
    bottom.set(xlabel="feature", ylabel="IF feature is", ylim=(0, 1.3), yticks=[], xlim=(0, 10))
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("rules.png"), metadata={"Software": None})


if __name__ == "__main__":
    main()
