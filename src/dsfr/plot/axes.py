"""Axes, colours and feature names, shared by all plots."""

from __future__ import annotations

from typing import Any, TypeAlias

from dsfr.model.model import Model

Axes: TypeAlias = Any
"""A `matplotlib.axes.Axes`; matplotlib is imported when something is drawn."""

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B07700", "#56B4E9", "#6B5BB5", "#555F6E")
"""Colours for all kinds of colour vision (after Okabe and Ito); in grey, dashes distinguish lines."""
DASHES = ("-", "--", ":", "-.")


def model_of(given: Any) -> Model:
    """The model of a fitted estimator, or the model that is given.

    Raises
    ------
    ValueError
        If it is neither.
    """
    model = getattr(given, "model_", given)
    if not isinstance(model, Model):
        raise ValueError(f"model={type(given).__name__} must be a Model or a fitted estimator of dsfr")
    return model


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure.

    Raises
    ------
    ImportError
        If matplotlib is missing, saying how to install it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'dsfr[report]'") from error
    if ax is None:
        ax = plt.subplots(figsize=(7.0, 4.0), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def color_of(k: int) -> str:
    """Colour of rule k, counted from 0."""
    return COLORS[k % len(COLORS)]


def dash_of(k: int) -> str:
    """Dashes of rule k: new ones once colours repeat."""
    return DASHES[k // len(COLORS) % len(DASHES)]


def index_of(model: Model, feature: str | int) -> int:
    """Index of a feature given by name or index.

    Raises
    ------
    ValueError
        If the model has no such feature.
    """
    names = model.feature_names
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int) and not isinstance(feature, bool) and 0 <= feature < len(names):
        return feature
    raise ValueError(f"feature={feature!r} must be one of {', '.join(names)}, or a number under {len(names)}")


def label_of(name: str) -> str:
    """A name with dollar signs escaped, which matplotlib would take as mathematics."""
    return name.replace("$", r"\$")
