"""What a user would take instead: regression methods of other packages, which see the labelled rows only.

Defaults of each package, with these exceptions. Features are standardised for ridge and Gaussian processes, which
choose their parameters by leave-one-out and by marginal likelihood (at most 1,500 labels). Forests have 200 trees. EBM
has 10 interactions and 8 bags: with its defaults (5 interactions per feature, 14 bags) a fit with 50 labels takes 42 s
of CPU time with 13 features and 450 s with 100.
"""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

MOST_FOR_PROCESSES = 1500


def ridge(d: int, seed: int) -> Any:
    from sklearn.linear_model import RidgeCV

    return standardised(RidgeCV(np.logspace(-3, 3, 25)))


def standardised(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def gaussian_process(d: int, seed: int) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0, (1e-2, 1e3)) + WhiteKernel(0.1, (1e-6, 1e1))
    return standardised(GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed))


def gaussian_process_ard(d: int, seed: int) -> Any:
    """One length scale per feature, plus a linear kernel."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

    curved = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.full(d, 2.0), (1e-2, 1e3))
    linear = ConstantKernel(0.1, (1e-5, 1e3)) * DotProduct(1.0, (1e-3, 1e3))
    kernel = curved + linear + WhiteKernel(0.1, (1e-6, 1e1))
    return standardised(GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed))


def forest(d: int, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(200, random_state=seed)


def extra_trees(d: int, seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(200, random_state=seed)


def boosting(d: int, seed: int) -> Any:
    """Not the histogram version, whose leaves of at least 20 rows leave it no splits with few labels."""
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(random_state=seed)


def cubist(d: int, seed: int) -> Any:
    from cubist import Cubist

    return Cubist(random_state=seed % 4096)


def catboost(d: int, seed: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(verbose=0, thread_count=1, allow_writing_files=False, random_seed=seed)


def ebm(d: int, seed: int) -> Any:
    from interpret.glassbox import ExplainableBoostingRegressor

    return ExplainableBoostingRegressor(interactions=10, outer_bags=8, n_jobs=1, random_state=seed)


def gp_gam(d: int, seed: int) -> Any:
    from imodels import GPGamRegressor

    return GPGamRegressor()


def lasso(d: int, seed: int) -> Any:
    from sklearn.linear_model import LassoCV

    return standardised(LassoCV(random_state=seed))


def small_tree(d: int, seed: int) -> Any:
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(max_leaf_nodes=8, random_state=seed)


def rule_fit(d: int, seed: int) -> Any:
    from imodels import RuleFitRegressor

    return RuleFitRegressor(random_state=seed)


def figs(d: int, seed: int) -> Any:
    from imodels import FIGSRegressor

    return FIGSRegressor(random_state=seed)


def hs_tree(d: int, seed: int) -> Any:
    from imodels import HSTreeRegressor

    return HSTreeRegressor(random_state=seed)


PEERS: dict[str, tuple[Callable[[int, int], Any], str]] = {
    "RidgeCV": (ridge, "scikit-learn"),
    "GP": (gaussian_process, "scikit-learn"),
    "GP ARD + linear": (gaussian_process_ard, "scikit-learn"),
    "extra trees": (extra_trees, "scikit-learn"),
    "forest": (forest, "scikit-learn"),
    "boosting": (boosting, "scikit-learn"),
    "Cubist": (cubist, "cubist"),
    "CatBoost": (catboost, "catboost"),
    "GPGam": (gp_gam, "imodels"),
    "EBM": (ebm, "interpret-core"),
}
"""Each method as a function of the number of features and a seed, and its package."""

READABLE_ONLY = {
    "lasso": (lasso, "scikit-learn"),
    "tree of 8 leaves": (small_tree, "scikit-learn"),
    "RuleFit": (rule_fit, "imodels"),
    "FIGS": (figs, "imodels"),
    "HSTree": (hs_tree, "imodels"),
}
"""Methods whose models people can read and that are compared by `benchmarks.readable` only."""
READABLE = ("lasso", "tree of 8 leaves", "RuleFit", "FIGS", "HSTree", "Cubist", "GPGam", "EBM")
ALL = PEERS | READABLE_ONLY


def applies(method: str, n_labels: int) -> bool:
    """Whether a method can run with so many labels in reasonable time."""
    return n_labels <= MOST_FOR_PROCESSES or method not in ("GP", "GP ARD + linear", "GPGam", "EBM")


def version_of(method: str) -> str:
    """Package and version, stored with every score."""
    package = ALL[method][1]
    return f"{package} {version(package)}"
