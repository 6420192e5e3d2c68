"""Published numbers of the paper.

Source: Shi, Zhang, Cao, Tanveer, Lin, "Distributed Semi-supervised Fuzzy Regression with Interpolation Consistency
Regularization", Table II ("Performance comparison on each dataset"): mean / standard deviation of the test NRMSE,
p-value of a t-test against SFR-ICR, seconds; copied as printed.
"""

from __future__ import annotations

from dataclasses import dataclass

DATASETS = ("airfoil", "wmsl", "ccpp", "kch", "ch", "artificial")
"""In the order of Table II."""
METHODS = ("FR", "LapWNN", "s-SFR", "SFR-G", "SFR-ICR")
SETTINGS = ("centralised", "distributed")
TITLES = {"airfoil": "Airfoil", "wmsl": "WMSL", "ccpp": "CCPP", "kch": "KCH", "ch": "CH", "artificial": "Artificial"}

_TABLE = """
airfoil    FR      0.6657 0.0188 0.0011 0.0581  0.6664 0.0334 0.0052 0.3283
airfoil    LapWNN  1.3967 0.2478 0.0002 0.2151  1.4428 0.3934 0.0000 7.1624
airfoil    s-SFR   2.4290 1.5583 0.0419 0.1183  1.6619 0.6212 0.0124 0.3123
airfoil    SFR-G   1.3124 0.3607 0.0078 0.2066  1.3578 0.1901 0.0043 0.4671
airfoil    SFR-ICR 0.7423 0.0288 -      0.1363  0.7506 0.0087 -      0.8115
wmsl       FR      0.6702 0.0176 0.0047 0.2811  0.6770 0.0237 0.0017 0.6251
wmsl       LapWNN  0.7475 0.0865 0.0323 27.741  0.8734 0.0576 0.0110 10.678
wmsl       s-SFR   0.9871 0.0788 0.0044 0.2953  0.8634 0.0458 0.0013 0.6639
wmsl       SFR-G   0.9199 0.0474 0.0468 1.0250  0.8846 0.0412 0.0015 1.0134
wmsl       SFR-ICR 0.7648 0.0311 -      0.5166  0.7588 0.0312 -      1.4836
ccpp       FR      0.2472 0.0075 0.0003 0.1173  0.2472 0.0075 0.0003 0.3059
ccpp       LapWNN  0.7475 0.0865 0.0001 27.741  0.8734 0.0576 0.0001 10.678
ccpp       s-SFR   0.3342 0.0528 0.0571 0.0878  0.3263 0.0227 0.0022 0.2690
ccpp       SFR-G   0.3187 0.0412 0.0811 7.6291  0.3557 0.0820 0.0091 1.1656
ccpp       SFR-ICR 0.2809 0.0100 -      0.1227  0.2856 0.0130 -      0.5945
kch        FR      0.5631 0.0080 0.0019 0.2485  0.5657 0.0038 0.0001 0.8836
kch        LapWNN  0.7262 0.0266 0.0969 93.464  0.9348 0.0291 0.0256 24.184
kch        s-SFR   0.8063 0.0433 0.0041 0.1947  0.7704 0.0788 0.0103 0.9245
kch        SFR-G   0.7728 0.0432 0.0123 89.677  0.7915 0.0922 0.0011 9.9487
kch        SFR-ICR 0.6952 0.0270 -      0.5664  0.6673 0.0211 -      1.9435
ch         FR      0.5426 0.0180 0.0000 0.8325  0.5394 0.0219 0.0000 3.6808
ch         LapWNN  1.0023 0.0650 0.0223 94.025  1.0382 0.0294 0.0000 24.801
ch         s-SFR   0.9387 0.1030 0.0012 0.6695  0.9498 0.1210 0.0457 2.8925
ch         SFR-G   0.9886 0.0113 0.0093 53.773  0.9313 0.0584 0.0324 9.7301
ch         SFR-ICR 0.6875 0.0406 -      1.1965  0.7703 0.1217 -      5.2945
artificial FR      1.0067 0.0022 0.0435 0.3371  1.0069 0.0039 0.0017 0.7828
artificial LapWNN  1.2384 0.0824 0.0052 2.5700  1.0891 0.0462 0.0034 8.2684
artificial s-SFR   1.1590 0.1202 0.0027 0.2177  1.2021 0.1627 0.0015 0.8537
artificial SFR-G   1.0715 0.0478 0.0261 1.9241  1.0653 0.0756 0.0007 1.1028
artificial SFR-ICR 1.0409 0.0339 -      0.5266  1.0121 0.0094 -      1.4357
"""

SIZES = {
    "airfoil": (1503, 50, 1153, 300),
    "wmsl": (3338, 50, 2621, 667),
    "ccpp": (9568, 50, 7605, 1913),
    "ch": (20640, 50, 16462, 4128),
    "kch": (21613, 50, 17191, 4322),
}
"""Table I: samples, labelled, unlabelled and test rows, as printed; it does not list the artificial set."""
CORES = 26
"""Cores of the paper's computing node."""
SIGNIFICANCE_LEVEL = 0.05
ADMM_PENALTY = 0.1
"""Value of rho_s and rho_p in the paper."""
REDUCTIONS = {"LapWNN": 31.96, "s-SFR": 23.19, "SFR-G": 19.44}
"""Claimed reduction of the NRMSE of each method by distributed SFR-ICR, in per cent, averaged over data sets."""
CLUSTER_ROUNDS, WEIGHT_ROUNDS = 25, 300
"""Rounds within which DFCM and DICR converge, according to the paper."""
LARGE_PENALTY = 1e-3
"""Values of rho_p above this one perform better, according to the paper."""
BEST_PAIRS = {"airfoil": 5000, "wmsl": 5000, "ch": 10000, "kch": 10000}
"""Best numbers of interpolated pairs, according to the paper."""

AUTHORS_RULES = {"airfoil": 5, "wmsl": 3, "ccpp": 4, "kch": 10, "ch": 5, "artificial": 10}
"""Numbers of rules in the authors' program (github.com/leijiezhang/DSFR, ``n_rules`` of its ``test_*_d.m``)."""
STATED_UNCONVERGED = {"wmsl": 0.90, "kch": 0.98}
"""Shares of the folds in which DICR is said to be stopped by its limit of rounds."""
STATED_RIDGE = 1e-5
"""Ridge that s-SFR is said to have had on Airfoil."""


def training_rows(dataset: str) -> int:
    """Labelled and unlabelled rows of Table I."""
    _, labeled, unlabeled, _ = SIZES[dataset]
    return labeled + unlabeled


@dataclass(frozen=True, slots=True)
class PaperCell:
    """Printed numbers of one method on one data set in one setting."""

    mean: float
    deviation: float
    p_value: float | None
    seconds: float


def _parse() -> dict[tuple[str, str, str], PaperCell]:
    cells = {}
    for line in _TABLE.strip().splitlines():
        dataset, method, *numbers = line.split()
        for setting, (mean, deviation, p_value, seconds) in zip(SETTINGS, (numbers[:4], numbers[4:]), strict=True):
            p = None if p_value == "-" else float(p_value)
            cells[dataset, setting, method] = PaperCell(float(mean), float(deviation), p, float(seconds))
    return cells


PAPER = _parse()
"""Cells of Table II by data set, setting and method."""
