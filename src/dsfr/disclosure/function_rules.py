"""Rules on sums of known functions over rows: no function is made for a few rows, and functions are few against rows.

Knots of effects, ends of ramps and bins lie on the grid of the declared range (`dsfr.core.scaling.grid`), so none can
be moved round by round until it finds a single value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.features.effects import Effects
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.scaling.affine import LARGEST_FLOAT, Ranges
from dsfr.core.scaling.grid import ON_GRID, grid, is_on_grid
from dsfr.disclosure.rules import Request, effects_of, too_light
from dsfr.training.tasks.messages import scaling_ranges

NO_RANGES = "no declared ranges, which the task row_moments tells first"


def ranges(request: Request) -> str | None:
    """Features are scaled by the declared ranges, or by wider ones about the same middle.

    Scaled values have a bound: with a range of nearly no length, a scaled feature is a threshold anywhere.
    """
    asked, declared = request.broadcast, request.declared
    if declared is None or "low" not in asked:
        return None
    found = Ranges(asked["low"], asked["high"])
    unit = declared.half_widths
    same = np.abs(found.midpoints - declared.midpoints) <= ON_GRID * unit
    if not (same & (found.half_widths >= (1.0 - ON_GRID) * unit)).all():
        return "other ranges than those that were declared, or shorter ones"
    return None


def effects(request: Request) -> str | None:
    """Effects have knots on the grid, with enough own rows at each, and products of lines alone."""
    for name in request.broadcast:
        if name.startswith("dilations"):
            return "wavelets, which can be put on single rows; rules of clusters and effects are allowed"
    for found in effects_of(request.broadcast):
        problem = _products(found) or _knots(request, found)
        if problem is not None:
            return problem
    return None


def _products(found: Effects) -> str | None:
    if len(found.levels):
        return "levels, which can be made for single rows; lines and curves are allowed"
    if len(found.triples):
        return "products of three features, which can be made for single rows; products of two lines are allowed"
    if found.pairs.size and found.pairs[:, 1::2].any():
        return "products of two curves, which can be made for single rows; products of lines are allowed"
    return None


def _knots(request: Request, found: Effects) -> str | None:
    if request.declared is None:
        return NO_RANGES
    scaling = scaling_ranges(request.memory, request.broadcast)
    values, columns = scaling.midpoints + scaling.half_widths * found.knots, grid(request.declared)
    for j in range(found.knots.shape[1]):
        problem = _off_grid(request, values[:, j], columns[j], j)
        if problem is None:
            problem = too_light(request.policy.min_mass, set_masses(request, values[:, j], j), f"set of column {j}")
        if problem is not None:
            return problem
    return None


def set_masses(request: Request, knots: Array, j: int) -> Array:
    """Sum of the memberships of the own rows in the triangular set of every knot that any row is in."""
    distinct = np.unique(knots)
    total = np.zeros(len(distinct))
    for X, _ in request.shard.batches():
        x = np.clip(X[:, j], distinct[0], distinct[-1])
        above = np.clip(np.searchsorted(distinct, x), 1, max(len(distinct) - 1, 1))
        if len(distinct) == 1:
            total += len(x)
            continue
        share = (x - distinct[above - 1]) / (distinct[above] - distinct[above - 1])
        total += np.bincount(above, share, len(distinct)) + np.bincount(above - 1, 1.0 - share, len(distinct))
    shown: Array = total[total != 0.0]
    return shown


def link(request: Request) -> str | None:
    """Predictions are as they are: limits of values are thresholds that can be anywhere."""
    asked = request.broadcast["link"].tolist()
    allowed = [0.0, 1.0, -LARGEST_FLOAT, LARGEST_FLOAT]
    return None if asked == allowed else "limits or logarithms of predictions, which are thresholds anywhere"


def ramps(request: Request) -> str | None:
    """Short rules have ramps on the grid, and none covers a few own rows alone."""
    if "first_terms" not in request.broadcast:
        return None
    if request.declared is None:
        return NO_RANGES
    if "student_low" in request.broadcast or "line_low" in request.broadcast:
        return "limits of features, which are thresholds anywhere"
    found, columns = LinguisticRules.of_arrays(request.broadcast), grid(request.declared)
    if found.n_rules > request.policy.max_centers:
        return f"{found.n_rules} rules, and max_centers is {request.policy.max_centers}"
    for j in range(found.n_features):
        ends = np.array(found.ramps_of(j)).reshape(-1)
        problem = _off_grid(request, ends, columns[j], j)
        if problem is not None:
            return problem
    masses = sum((found.strengths(X).sum(axis=0) for X in _blocks(request)), np.zeros(found.n_rules))
    return too_light(request.policy.min_mass, masses, "rule")


def bin_edges(request: Request) -> str | None:
    """Bins end on the grid."""
    if request.declared is None:
        return NO_RANGES
    knots, columns = request.broadcast["knots"], grid(request.declared)
    features = request.broadcast.get("candidates", np.arange(len(knots)))
    for row, j in zip(knots, features.tolist(), strict=True):
        problem = _off_grid(request, row, columns[j], j)
        if problem is not None:
            return problem
    return None


def bins(request: Request) -> str | None:
    """Columns of products are few against the own rows of every bin, and no row has a large part of one.

    What is compared is the sum of the weights of rows in a bin over the largest weight. Weights are the strengths of a
    rule, and their products with the position within the bin, from either end.
    """
    n_columns = int(np.sqrt(2 * request.contribution["bins"].shape[-1]))
    least = max(request.policy.min_mass, n_columns / request.policy.max_weights_per_label)
    knots = request.broadcast["knots"]
    features = request.broadcast.get("candidates", np.arange(len(knots))).tolist()
    masses = [_bin_masses(request, row, j) for row, j in zip(knots, features, strict=True)]
    what = f"bin of {n_columns} columns"
    return too_light(least, np.concatenate(masses), what, "the least by min_mass and max_weights_per_label")


def _bin_masses(request: Request, knots: Array, j: int) -> Array:
    """Sums of weights over the largest one, of every bin of a feature and every rule; bins without rows left out."""
    is_ruled, n_bins = "evaluated" in request.broadcast, 3 * (len(knots) + 1)
    rules = LinguisticRules.of_arrays(request.broadcast) if is_ruled else LinguisticRules.always(1)
    evaluated = request.broadcast.get("evaluated", np.zeros(1, dtype=np.int64))
    totals, largest = np.zeros((2, len(evaluated), n_bins))
    for X in _blocks(request):
        strengths = rules.strengths(X)[:, evaluated] if is_ruled else np.ones((len(X), 1))
        place = np.searchsorted(knots, X[:, j], side="right")
        low, high = knots[np.maximum(place - 1, 0)], knots[np.minimum(place, len(knots) - 1)]
        is_inner = (place > 0) & (place < len(knots))
        position = np.where(is_inner, (X[:, j] - low) / np.where(is_inner, high - low, 1.0), 0.0)
        for number, weight in enumerate(strengths.T):
            for part, share in enumerate((np.ones(len(X)), position, is_inner * (1.0 - position))):
                own = weight * share
                np.add.at(totals[number], 3 * place + part, own)
                np.maximum.at(largest[number], 3 * place + part, own)
    shown: Array = totals[largest > 0.0] / largest[largest > 0.0]
    return shown


def columns(request: Request) -> str | None:
    """Columns of products are few against the own rows."""
    n_products = request.contribution["products"].shape[-1]
    n_columns = int(np.sqrt(2 * n_products))
    most = int(request.policy.max_weights_per_label * request.shard.n_samples)
    if n_columns > most:
        return f"{n_columns} columns for the own rows, and max_weights_per_label is too low for more than {most}"
    return None


def sample(request: Request) -> str | None:
    """A sample of rows is no smaller than a table may be."""
    share = float(request.broadcast["sample"])
    if share >= 1.0:
        return None
    n_rows = request.shard.sampled(share).n_samples
    least = request.policy.min_rows
    return None if n_rows >= least else f"a sample of fewer own rows than min_rows, {least}"


def all_rows(request: Request) -> str | None:
    """Sums are over all rows: of two samples, the difference can be one row."""
    return "a sample of the rows" if "sample" in request.broadcast else None


def masses_alone(request: Request) -> str | None:
    """Rules are measured by their masses: counts of rows where a rule is the strongest can be of few rows."""
    return None if "masses_alone" in request.broadcast else "counts of rows where a rule is the strongest"


def grid_cells(request: Request) -> str | None:
    """Counts on the grid show no few rows, and there are no more of them than allowed."""
    if request.declared is None:
        return NO_RANGES
    counts, n = request.contribution["counts"], float(request.contribution["n_samples"])
    steps = np.diff(np.pad(counts, ((0, 0), (1, 1)), constant_values=((0, 0), (0.0, n))), axis=1)
    values = max(len(np.unique(column)) for column in grid(request.declared))
    if values > request.policy.max_thresholds:
        return f"{values} values of a grid, and max_thresholds is {request.policy.max_thresholds}"
    least = request.policy.min_split
    if (steps[steps != 0.0] < least).any():
        return f"counts that split off fewer rows than min_split, {least}"
    return None


def _off_grid(request: Request, values: Array, column: Array, j: int) -> str | None:
    assert request.declared is not None
    if len(values) == 0 or is_on_grid(values, column, request.declared, j):
        return None
    most = request.policy.max_thresholds
    return f"values of column {j} that are not on the grid of its declared range, which has at most {most}"


def _blocks(request: Request) -> Iterator[Array]:
    for X, _ in request.shard.batches():
        for block in row_blocks(len(X)):
            yield X[block].astype(np.float64)
