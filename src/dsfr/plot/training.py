"""Plots of a training: convergence and communication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from dsfr.engines import Ledger
from dsfr.model.model import Model
from dsfr.model.record import record
from dsfr.plot.axes import COLORS, DASHES, Axes, axes_or_new, label_of

CURVES = (
    ("error_bound", "error bound"),
    ("primal_residual", "primal residual"),
    ("dual_residual", "dual residual"),
    ("objective", "objective above its lowest"),
)
MOST_AGENTS = 20


def convergence(history: Model | Sequence[Any], stage: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Error bound, residuals and objective by round, on a logarithmic axis.

    ``history`` is a model, a fitted estimator or its ``history_``; ``stage`` is "clusters" or "weights"
    (default: the last that had more than one round).
    """
    rounds = _rounds(history)
    if not rounds:
        raise ValueError("there is no history of rounds: the model file has none, or nothing was iterated")
    chosen = stage or _longest_last(rounds)
    mine = _running([info for info in rounds if info["stage"] == chosen])
    if not mine:
        raise ValueError(f"stage={stage!r} must be one of {', '.join(sorted({info['stage'] for info in rounds}))}")
    ax = axes_or_new(ax)
    for k, (key, name) in enumerate(CURVES):
        points = _positive(mine, key)
        if points:
            marker = "o" if len(points) == 1 else None
            ax.plot(*zip(*points, strict=True), color=COLORS[k], linestyle=DASHES[k], marker=marker, label=name)
    ax.set(yscale="log", xlabel="round", title=f"Convergence of the {chosen}")
    if ax.lines:
        ax.legend(frameon=False, fontsize="small")
    return ax


def communication(ledger: Model | Ledger, by: str = "task", *, ax: Axes | None = None) -> Axes:
    """Kilobytes in both directions, ``by`` "task" or "agent"; of a model, a fitted estimator or its ``ledger_``."""
    ledger = getattr(ledger, "ledger_", ledger)
    kept = dict(ledger.training) if isinstance(ledger, Model) else record([], ledger)
    keys = {"task": ("ledger", "bytes_down", "bytes_up"), "agent": ("agents", "bytes_received", "bytes_sent")}
    if by not in keys:
        raise ValueError(f"by={by!r} must be 'task' or 'agent'")
    part, down, up = keys[by]
    entries = sorted(kept.get(part, []), key=lambda entry: -entry[down] - entry[up])[:MOST_AGENTS]
    if not entries:
        raise ValueError("nothing was sent, or the model file has no ledger")
    ax = axes_or_new(ax)
    places = np.arange(len(entries))[::-1]
    received, sent = (np.array([entry[key] / 1e3 for entry in entries]) for key in (down, up))
    ax.barh(places, received, color=COLORS[0], label="to agents" if by == "task" else "received")
    ax.barh(
        places,
        sent,
        left=received,
        color=COLORS[1],
        hatch="///",
        edgecolor="white",
        label="from agents" if by == "task" else "sent",
    )
    ax.set_yticks(places, [label_of(str(entry[by])) for entry in entries])
    ax.set(xlabel="kB")
    ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return ax


def _rounds(history: Model | Sequence[Any]) -> list[Mapping[str, Any]]:
    history = getattr(history, "history_", history)
    entries = history.training.get("history", []) if isinstance(history, Model) else history
    return [asdict(entry) if is_dataclass(entry) and not isinstance(entry, type) else entry for entry in entries]


def _running(rounds: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rounds numbered consecutively, although every member counts its own from 1."""
    before = last = 0
    counted: list[Mapping[str, Any]] = []
    for info in rounds:
        before += last if info["round"] <= last else 0
        last = info["round"]
        counted.append({**info, "round": before + last})
    return counted


def _longest_last(rounds: Sequence[Mapping[str, Any]]) -> str:
    """The last stage with more than one round, or else the last stage."""
    stages = [info["stage"] for info in rounds]
    iterated = [stage for stage in stages if stages.count(stage) > 1]
    return str((iterated or stages)[-1])


def _positive(rounds: Sequence[Mapping[str, Any]], key: str) -> list[tuple[int, float]]:
    """Rounds and positive values, for a logarithmic axis; the objective minus its minimum."""
    known = [(info["round"], info[key]) for info in rounds if info[key] is not None]
    if key == "objective" and known:
        lowest = min(value for _, value in known)
        known = [(number, value - lowest) for number, value in known]
    return [(number, value) for number, value in known if value > 0]
