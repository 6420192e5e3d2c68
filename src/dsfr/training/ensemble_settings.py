"""Which models the automatic mode averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfr.training.component import Component, Rule, count, number, one_of, parameter
from dsfr.training.tasks.symbols import MOST_MODELS

NUMBER_OF_MODELS = Rule(
    lambda value: value == "auto" or (count(0, "").holds(value) and value <= MOST_MODELS),
    f"a whole number from 0 (effects alone) to {MOST_MODELS} (every second one has twice the rules), or 'auto' to go "
    "on while more rules help",
)
KIND_OF_RELEVANCE = one_of("evidence", "slopes", None)
FURTHER_EFFECTS = ("polynomials", "levels", "triples", "pairs", "single")
"""Each adds a model to those of the kinds behind it."""
KIND_OF_EFFECTS = one_of("auto", *FURTHER_EFFECTS, None)
WEIGHTS_PER_LABEL = number(
    0, "a number > 0: the weights that a sum over labels may determine, for each label", or_none=True
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Ensemble(Component):
    """Which models the automatic mode averages, and how large they may be.

    Parameters
    ----------
    n_models : int or "auto", default="auto"
        Number of rule bases whose predictions are averaged: of ``n_rules``, twice as many and so on, two of each, with
        different widths, kinds of pairs and seeds. Their shares follow the evidence (``tune="evidence"``, in units of
        its chance variation) or are stacked on leave-one-out predictions (``tune="loo"``). "auto" takes three numbers
        of rules, and more while they help. Those that get no share are left out. `explain` shows the strongest. 1 gives
        a single rule base, 0 effects alone.
    relevance : {"evidence", "slopes", None}, default="evidence"
        "slopes" stretches features, before clustering, by how steep earlier models are along them; a single model is
        trained three times for that. "evidence" does so by the evidence for curvature along each feature, in one
        more round (up to 149 features), and by slopes as well. With ``tune="evidence"`` lines of different rules then
        differ the less along a feature the less relevant it is. Every rule base is an ordinary one.
    effects : {"auto", "polynomials", "levels", "triples", "pairs", "single", None}, default="auto"
        Average rule bases with sums of effects: "single" adds a plane (ridge regression), and a curve for each feature,
        on the scale of its quantiles over all rows (rules with one condition); "pairs" adds a model with products of
        two features as well (rules with two conditions). "triples" adds one with the likeliest products of two or three
        features (up to three conditions) where there are 100 labels and these clearly speak for it, and "levels" one in
        which single values of features with few values have effects of their own, as codes of schools have, where 150
        labels clearly speak for it. "polynomials" adds one for smooth functions: polynomials of the features and their
        products, as a Gaussian process with a length for each feature has them. How relevant and how curved each
        feature is, the evidence decides. Shares are stacked on leave-one-out predictions. None: rule bases alone.
        "auto": "polynomials", or None where ``n_models`` asks for a number of rule bases.
    max_weights_per_label : float, default=None
        Most weights that a sum over labels may determine, for each label: with more than a third, sums over labelled
        rows nearly give the rows away. Members that need more get fewer rules, curves and products, or are left out.
    """

    argument: ClassVar[str] = "ensemble"
    shorthand: ClassVar[str] = "auto"

    n_models: int | str = parameter("auto", NUMBER_OF_MODELS)
    relevance: str | None = parameter("evidence", KIND_OF_RELEVANCE)
    effects: str | None = parameter("auto", KIND_OF_EFFECTS)
    max_weights_per_label: float | None = parameter(None, WEIGHTS_PER_LABEL)
