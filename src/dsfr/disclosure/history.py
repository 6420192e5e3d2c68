"""What an owner has answered in a fit, so that no further answer differs from it by a few rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256

import numpy as np

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.clustering.memberships import membership_powers, squared_distances
from dsfr.core.features.linguistic import ARRAYS, LinguisticRules
from dsfr.core.features.takagi_sugeno import Rules, firing_strengths
from dsfr.core.scaling.affine import scale_features
from dsfr.disclosure.differences import BinnedPair, Weights, cell_counts, fewest_rows
from dsfr.disclosure.function_rules import set_masses
from dsfr.disclosure.kept_weights import KeptWeights
from dsfr.disclosure.masks import hash_arrays
from dsfr.disclosure.rules import Request, numbered, too_light
from dsfr.engines.agent import LASTING
from dsfr.storage.bundles import Bundle
from dsfr.training.tasks.messages import scaling_ranges

ANSWERED = LASTING + "answered_"
"""Prefix of the questions that were answered; a digest of the question and the name of the array follow."""
ROWS_FOR_A_DIFFERENCE = 400
"""Own rows for each row that two questions about clusters differ by at least, until these are `Policy.min_mass`."""
_KEPT = KeptWeights()
CLUSTER_TASKS = ("cluster_sums", "cluster_variances", "local_variances", "cluster_consensus")


def answered(kept: Bundle) -> list[Bundle]:
    """What was asked before, each as `asked` has it."""
    found: dict[str, Bundle] = {}
    for name, array in kept.items():
        if name.startswith(ANSWERED):
            digest, own = name.removeprefix(ANSWERED).split("_", 1)
            found.setdefault(digest, {})[own] = array
    return list(found.values())


def with_question(request: Request) -> Bundle:
    """What is kept of a question that was answered; the same names if it was before."""
    return {
        f"{ANSWERED}{_digest(one).hex()[:32]}_{name}": array for one in asked(request) for name, array in one.items()
    }


def asked(request: Request) -> Iterator[Bundle]:
    """What a question is about, as far as its answer can be subtracted from another one."""
    task, broadcast = request.task, request.broadcast
    if task in CLUSTER_TASKS and "centers" in broadcast:
        yield {"centers": broadcast["centers"], "fuzzifier": request.memory["fuzzifier"], **_ranges(request)}
    elif "first_terms" in broadcast or task == "bend_sums":
        yield _terms(request)
    else:
        for base in numbered(broadcast, ("centers", "widths")):
            yield {**base, **_memberships(base, broadcast), **_ranges(request)}
        for curves in numbered(broadcast, ("knots", "singles")):
            ranges = scaling_ranges(request.memory, broadcast)
            yield {"curve_knots": ranges.midpoints + ranges.half_widths * curves["knots"]}
    if task == "keep_teacher":
        yield {"teacher": np.frombuffer(_digest(broadcast), dtype=np.uint8)}
    if "starts" in broadcast:
        yield {"starts": np.frombuffer(_digest(broadcast), dtype=np.uint8)}
    if "sample" in broadcast:
        yield {"sample": broadcast["sample"]}


def _ranges(request: Request) -> Bundle:
    ranges = scaling_ranges(request.memory, request.broadcast)
    return {"low": ranges.low, "high": ranges.high}


def _memberships(base: Bundle, broadcast: Bundle) -> Bundle:
    """The kind of sets of a rule base, if it is said."""
    for name, array in broadcast.items():
        if name.startswith("widths") and array is base["widths"]:
            kind = name.replace("widths", "membership", 1)
            return {"membership": broadcast[kind]} if kind in broadcast else {}
    return {}


def _terms(request: Request) -> Bundle:
    """Short rules, and the bins of columns that they are summed by; bins without rules are of all rows."""
    broadcast, d = request.broadcast, request.shard.n_features
    rules = {name: broadcast[name] for name in ARRAYS if name in broadcast} or LinguisticRules.always(d).arrays()
    evaluated = broadcast.get("evaluated", np.arange(len(rules["first_terms"])))
    columns = broadcast.get("candidates", np.arange(d)).tolist()
    bins = {f"bins_{j}": np.unique(row) for j, row in zip(columns, broadcast.get("knots", ()), strict=False)}
    return {**rules, "evaluated": evaluated, **bins}


def _digest(bundle: Bundle) -> bytes:
    digest = sha256()
    hash_arrays(digest, bundle)
    return digest.digest()


def differences(request: Request) -> str | None:
    """No answer differs from an earlier one of the fit by a few own rows alone."""
    new = list(asked(request))
    for is_cluster in (False, True):
        problem = _centers_problem(request, [one for one in new if has_centers(one, is_cluster)], is_cluster)
        if problem is not None:
            return problem
    return _bins_problem(request, [one for one in new if "first_terms" in one])


def is_answered(request: Request, question: Bundle) -> bool:
    """Whether the same was asked before in this fit."""
    digest = _digest(question)
    return any(_digest(one) == digest for one in request.answered)


def has_centers(question: Bundle, is_cluster: bool) -> bool:
    """Whether a question is about clusters, or about rules with centers."""
    return "centers" in question and ("fuzzifier" in question) == is_cluster


def _centers_problem(request: Request, new: Sequence[Bundle], is_cluster: bool) -> str | None:
    """Clusters are compared with clusters, and rules with rules; also those of one question."""
    if not new:
        return None
    least = request.policy.min_mass
    if is_cluster:  # the last steps of honest clustering differ by single rows where an owner has few
        least = min(least, request.shard.n_samples / ROWS_FOR_A_DIFFERENCE)
    own = [weights_of(one) for one in new]
    earlier = [weights_of(one) for one in request.answered if has_centers(one, is_cluster)]
    found = fewest_rows(own, [*earlier, *own], partial(row_batches, request), least)
    if not found >= least:
        return _too_few(found, "clusters" if is_cluster else "rules", "min_mass", least)
    return None


def _bins_problem(request: Request, new: Sequence[Bundle]) -> str | None:
    """Sums by bins, and those of rules, are compared with all that were asked before."""
    earlier = [one for one in request.answered if "first_terms" in one]
    for one in new if earlier else ():
        least, found = _least_of_bins(request, one), _fewest_of_bins(request, one, earlier)
        if not found >= least:
            return _too_few(found, "rules or bins", "the least by min_mass and columns of products", least)
    return None


def _fewest_of_bins(request: Request, one: Bundle, earlier: Sequence[Bundle]) -> float:
    numbers, earlier = one["evaluated"].tolist(), together(earlier)
    own, others = LinguisticRules.of_arrays(one), [LinguisticRules.of_arrays(other) for other in earlier]
    pairs = [
        {(i, j): BinnedPair(_bins(one), _bins(other)) for i in numbers for j in other["evaluated"].tolist()}
        for other in earlier
    ]
    for X in row_batches(request):
        mine = own.strengths(X)
        for rules, compared in zip(others, pairs, strict=True):
            theirs = rules.strengths(X)
            for (i, j), pair in compared.items():
                pair.add(mine[:, i], theirs[:, j], X)
    least = _least_of_bins(request, one)
    return float(np.min([np.inf, *(pair.fewest_rows(least) for compared in pairs for pair in compared.values())]))


def together(questions: Sequence[Bundle]) -> list[Bundle]:
    """Questions about the same rules as one, with the bins of all their columns; not if these differ in a column."""
    found: list[Bundle] = []
    for one in questions:
        for other in found:
            if all(np.array_equal(array, other[name]) for name, array in one.items() if name in other):
                other |= one
                break
        else:
            found.append(dict(one))
    return found


def _bins(question: Bundle) -> dict[int, Array]:
    return {int(name.removeprefix("bins_")): ends for name, ends in question.items() if name.startswith("bins_")}


def _least_of_bins(request: Request, one: Bundle) -> float:
    policy = request.policy
    if not any(name.startswith("bins_") for name in one):
        return policy.min_mass
    return max(policy.min_mass, len(request.broadcast.get("line_features", ())) + 2.0)


def _too_few(found: float, what: str, rule: str, least: float) -> str:
    return (
        f"{what} that differ from those of another question of this fit by {int(found)} of the own rows, and {rule} "
        f"is {least:g}. Ask the same again, or something else"
    )


def cells(request: Request) -> str | None:
    """All values of a column that bins and ramps of the fit end at part the own rows into none, or not few."""
    least, used, new = request.policy.min_split, _ends(request.answered), _ends(list(asked(request)))
    together = {j: distinct_values(np.concatenate([ends, used.get(j, np.empty(0))])) for j, ends in new.items()}
    counts = {j: np.zeros(len(ends) + 1, dtype=np.int64) for j, ends in together.items()}
    for X in row_batches(request) if counts else ():
        for j, ends in together.items():
            counts[j] += cell_counts(X[:, j], ends)
    for j, found in counts.items():
        for count in found[(found > 0) & (found < least)].tolist():
            return (
                f"values of column {j} that part {count} of the own rows, together with those of earlier questions of "
                f"this fit, and min_split is {least}"
            )
    return None


def _ends(questions: Sequence[Bundle]) -> dict[int, Array]:
    """Values that bins and ramps end at, by column."""
    found: dict[int, list[Array]] = {}
    for one in questions:
        for name, array in one.items():
            if name.startswith("bins_"):
                found.setdefault(int(name.removeprefix("bins_")), []).append(array)
        for j, start, end in zip(*(one.get(name, ()) for name in ARRAYS[2:]), strict=True):
            found.setdefault(int(j), []).append(np.array([start, end]))
    return {j: np.concatenate(parts) for j, parts in found.items()}


def knots(request: Request) -> str | None:
    """Fuzzy sets about all knots that curves of the fit have had hold enough own rows."""
    new = [one["curve_knots"] for one in asked(request) if "curve_knots" in one]
    if not new:
        return None
    together = np.concatenate([*new, *(one["curve_knots"] for one in request.answered if "curve_knots" in one)])
    for j in range(together.shape[1]):
        masses = set_masses(request, distinct_values(together[:, j]), j)
        problem = too_light(request.policy.min_mass, masses, f"set of column {j}, between all knots of this fit,")
        if problem is not None:
            return problem
    return None


def distinct_values(values: Array) -> Array:
    """Ascending values, those that differ by rounding once."""
    ordered = np.unique(values)
    unit = max(float(np.abs(ordered).max(initial=0.0)), 1e-300)
    distinct: Array = ordered[np.append(True, np.diff(ordered) > 1e-9 * unit)]
    return distinct


def once(request: Request) -> str | None:
    """One teacher in a fit, and one sample of the rows: two differ by whatever a coordinator likes."""
    for name, what in (("teacher", "another teacher"), ("sample", "another sample of the rows")):
        before = [one[name] for one in request.answered if name in one]
        for one in asked(request):
            if name in one and any(not np.array_equal(one[name], other) for other in before):
                return f"{what} than an earlier question of this fit: 1 is allowed"
    return None


def row_batches(request: Request) -> Iterator[Array]:
    """The own rows, block by block."""
    for X, _ in request.shard.batches():
        for block in row_blocks(len(X)):
            yield X[block].astype(np.float64)


def weights_of(question: Bundle) -> Weights:
    """Weights of rows as a function of a block of them, which are kept for the next comparison."""
    digest = _digest(question)
    return lambda X: _KEPT.get(digest, X, lambda: _weights(question, X))


def _weights(question: Bundle, X: Array) -> Array:
    """Weights of rows in the clusters or rules of a question; shape (n, k)."""
    ranges = scaling_ranges({}, question)
    scaled = scale_features(X, ranges)
    if "fuzzifier" in question:
        return membership_powers(squared_distances(scaled, question["centers"]), float(question["fuzzifier"]))
    return firing_strengths(scaled, Rules.of_arrays(question))
