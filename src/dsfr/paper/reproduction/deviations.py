"""The table of deviations from the paper, each with its measured effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dsfr.core.features.takagi_sugeno import MIN_WIDTH
from dsfr.core.penalties.interpolation_consistency import MAX_DEFAULT_PAIRS
from dsfr.paper.experiments.deviations import ALL
from dsfr.paper.experiments.results import Row
from dsfr.paper.reproduction.claims import Evidence
from dsfr.paper.reproduction.document import table
from dsfr.paper.reproduction.published import ADMM_PENALTY, SIZES, TITLES
from dsfr.paper.reproduction.summary import group_by, mean_curve
from dsfr.training import ICR


@dataclass(frozen=True, slots=True)
class Entry:
    """What the paper prints, what the default is, why, and the deviation of `DEVIATIONS` that measures it."""

    paper: str
    here: str
    why: str
    measured: tuple[str, ...] = ()
    effect: Callable[[Evidence], str] | str = ""
    """For what is not measured by a deviation of its own."""


def _population_variance() -> float:
    """Largest relative change of the NRMSE if the variance divides by n and not by n - 1."""
    return max(float(np.sqrt(n_test / (n_test - 1))) - 1 for *_, n_test in SIZES.values())


def _number_of_pairs(evidence: Evidence) -> str:
    """Lowest and highest mean error over the numbers of pairs that the paper tries."""
    spec, texts = evidence.results.spec("pairs"), []
    for dataset in spec["datasets"]:
        _, means, _ = mean_curve(evidence.results.where("pairs", dataset=dataset), "pairs")
        texts.append(f"{TITLES[dataset]} {means.min():.3f} to {means.max():.3f}")
    return f"mean NRMSE with {min(spec['values']):,} to {max(spec['values']):,} pairs, as they are: {', '.join(texts)}"


ENTRIES = (
    Entry(
        "eq. (5) prints `u^a` on the left",
        "it is `u`; `FuzzyRules(membership_exponent=1)` gives the printed form",
        "standard fuzzy c-means, and what objective (17) says; not part of the preset",
        ("eq. (5): memberships in place of their powers",),
    ),
    Entry(
        "eq. (4), (17), (19), (26) sum over the rows of a cluster `C_k`; (6) and (7) over all rows",
        'all rows, by their memberships; `FuzzyRules(cluster_rows="nearest")` gives `C_k`, in all of these sums',
        "memberships are fuzzy, and the sums of all rows minimise the objective",
        ("eq. (4), (17), (19), (26): sums over the rows of a cluster",),
    ),
    Entry(
        "centers start at random",
        'k-means++ and fuzzy c-means on the rows of one agent; `FuzzyRules(init="random")` draws them within the '
        "ranges of the features, `init=` takes own ones",
        "fewer rounds, and no empty clusters",
        ("random start",),
    ),
    Entry(
        "eq. (14) has no 1/2 before gamma",
        "it has",
        "closed form (16) and objective (20) do; the printed form is a doubled gamma",
        ("eq. (14): no 1/2 before gamma",),
    ),
    Entry(
        "eq. (18): widths average local variances by agent size",
        'pooled sums; `FuzzyRules(width_pooling="paper")` gives (18)',
        "equal to one table of all rows",
        ("eq. (18): average widths",),
    ),
    Entry(
        "eq. (30), (31): stop on squared differences of iterates",
        'gradient bound (weights), pooled step and disagreement (clusters); `ADMM(stopping="paper")` gives the '
        "tests, per agent and cluster",
        "differences can be small far from the solution",
        ("eq. (30), (31): stopping tests",),
    ),
    Entry(
        "eq. (37): `Q = (H'H + gamma B'B + mu I)^-1`",
        '`rho_p I` in place of `mu I`; `ADMM(stopping="paper", local_shift="ridge")` gives the printed form',
        "follows from (32); mu sits in the z-step; not part of the preset",
        ("eq. (37): mu = 1 in place of rho_p", "eq. (37): mu = 0.01 in place of rho_p"),
    ),
    Entry(
        "Algorithm 2 draws new pairs every round",
        "once per fit; `ADMM(refresh_pairs=True)` gives Algorithm 2",
        "otherwise the target moves and nothing converges",
        ("new pairs in every round",),
    ),
    Entry(
        "M pairs per agent; Table II does not say how many",
        f"as many as the agent has unlabelled rows, at most {MAX_DEFAULT_PAIRS:,} and then rescaled, in the preset "
        "too; `ICR(n_pairs=M)` takes M as it is",
        "gamma means the same for any number of rows",
        effect=_number_of_pairs,
    ),
    Entry(
        f"plain ADMM, rho_p = rho_s = {ADMM_PENALTY:g}",
        "preconditioned conjugate residuals; `ADMM()`: accelerated, penalties from the problem; "
        "`ADMM(acceleration=None)` with numbers gives the paper's",
        "many times fewer rounds",
        ("plain ADMM, rho_s = rho_p = 0.1",),
    ),
    Entry(
        "raw targets",
        'standardised; `RangeScaling(target="raw")` leaves them as they are',
        "the paper's ridge grid means something else on every data set otherwise",
        ("raw targets",),
    ),
    Entry(
        "full n x n kernel in SFR-G and LapWNN",
        'nearest neighbours; `Graph(kernel="full")` gives the paper\'s',
        "linear instead of quadratic in the rows; the paper gives no bandwidth, it is 1 in scaled features in both",
        ("full kernel graph (SFR-G)",),
    ),
    Entry(
        "mixing shares from a beta distribution, no parameters given",
        f"Beta({ICR().mix_concentration:g}, {ICR().mix_concentration:g}); `mix_concentration`",
        "the paper leaves it open; measured: Beta(1, 1)",
        ("mixing shares Beta(1, 1)",),
    ),
    Entry(
        "features are normalised to [-1, 1], it seems by all rows of a data set",
        "by the training rows, in the preset too",
        "test rows are not known when a model is trained",
        effect="not measured; it matters where a test row lies outside, as in WMSL",
    ),
    Entry(
        "NRMSE divides by an estimated variance that is not defined",
        "sample variance (ddof = 1) of the test targets",
        "the paper leaves it open",
        effect=f"NRMSE at most {100 * _population_variance():.2f}% larger with the population variance",
    ),
    Entry(
        "a cluster without spread has width 0, and eq. (1) divides by it",
        f"widths have a floor of {MIN_WIDTH:.0%} of half a feature's range, in the preset too",
        "the printed form is not defined",
        effect="none where clusters have spread",
    ),
    Entry(
        "its results have the lowest error at mu = 1 on all data sets",
        "read as gamma = 1",
        "the sentences after it speak of ICR, and say that the best mu differs",
        effect="none on fits",
    ),
    Entry(
        "all of them, but eq. (5) and (37)",
        "`SFRRegressor.paper()`, `dsfr fit --paper`",
        "the paper to the letter",
        (ALL,),
    ),
)
"""All deviations, in the order of the paper."""


def deviation_table(evidence: Evidence) -> str:
    """The table of ``docs/theory.md``."""
    by_name = {name: rows for (name,), rows in group_by(evidence.results.rows["deviations"], "deviation").items()}
    rows = []
    for entry in ENTRIES:
        effect = "; ".join(_effect(by_name[name]) for name in entry.measured)
        if not effect:
            effect = entry.effect if isinstance(entry.effect, str) else entry.effect(evidence)
        rows.append([entry.paper, entry.here, entry.why, effect])
    return table(("paper", "here", "why", "measured effect of the paper's choice"), rows, numeric=False)


def deviation_notes(evidence: Evidence) -> str:
    """What the effects are."""
    spec = evidence.results.spec("deviations")
    runs = evidence.results.n_runs("deviations")
    return (
        f"Measured on distributed SFR-ICR ({spec['agents']} agents, {spec['labels']} labels, ridge {spec['ridge']:g}, "
        f"gamma {spec['consistency']:g}; for the graph SFR-G), one deviation at a time, {runs} runs on each of "
        f"{len(spec['datasets'])} data sets: change of the mean NRMSE (lowest and highest of a data set); median "
        "distance of the predictions in standard deviations of the target; median of the largest distance of a center "
        "to the nearest one of the other fit, in scaled features (2 is the range of a feature); mean rounds of both."
    )


def _effect(rows: list[Row]) -> str:
    if all(row["diverged"] for row in rows):
        return f"diverges in {len(rows)} of {len(rows)} runs"
    found = [row for row in rows if not row["diverged"]]
    changes = {
        name: float(np.mean([row["nrmse_paper"] - row["nrmse_ours"] for row in group]))
        for (name,), group in group_by(found, "dataset").items()
    }
    low, high = min(changes, key=changes.__getitem__), max(changes, key=changes.__getitem__)
    apart, centers = (float(np.median([row[name] for row in found])) for name in ("predictions_apart", "centers_apart"))
    rounds = [float(np.mean([row[name] for row in found])) for name in ("rounds_paper", "rounds_ours")]
    diverged = f"; diverges in {len(rows) - len(found)} of {len(rows)} runs" if len(found) < len(rows) else ""
    return (
        f"NRMSE {np.mean(list(changes.values())):+.4f} ({TITLES[low]} {changes[low]:+.4f}, {TITLES[high]} "
        f"{changes[high]:+.4f}); predictions {apart:.2g}; centers {centers:.2g}; rounds {rounds[0]:.0f} against "
        f"{rounds[1]:.0f}{diverged}"
    )
