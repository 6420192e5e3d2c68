"""The coordinator's side of a federated fit: from settings and owners to a model file."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dsfr.disclosure import Policy, protect
from dsfr.engines import EngineError
from dsfr.engines.checkpoint.engine import with_checkpoint
from dsfr.federation.engine import Ask, FederationEngine, Replies, read_answer
from dsfr.federation.messages import CHECK, Message
from dsfr.federation.owner_site import plan_digest
from dsfr.federation.roster import Roster
from dsfr.io.agent_files import Columns
from dsfr.model.model import Model
from dsfr.pipeline.options import FitOptions, declare_ranges, keep_to_sums, make_estimator
from dsfr.training import PrivateSums, RangeScaling, Settings

SAVE_EVERY = 10
"""Rounds between two snapshots of the owners' memories; later rounds run again if a fit is resumed."""


def fit_plan(
    options: FitOptions, features: tuple[str, ...], ranges: RangeScaling, units: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """All that a fit asks for, as owners are told before they agree to it."""
    columns = declared_columns(options, features)
    chosen = {name: value for name, value in asdict(options).items() if value not in (None, ())}
    declared = {"lower": list(ranges.lower), "upper": list(ranges.upper), "target_range": list(ranges.target_range)}
    plan = {"columns": columns.to_json(), "options": chosen, "ranges": declared}
    used = {name: unit for name, unit in (units or {}).items() if name in (*features, options.target)}
    return plan | ({"units": used} if used else {})


def declared_columns(options: FitOptions, features: tuple[str, ...]) -> Columns:
    """The columns of a fit; levels of categories are declared, because nobody counts the rows of others.

    Raises
    ------
    ValueError
        If levels of a category are not declared.
    """
    categories = {name: levels for name, levels in options.categories.items() if levels is not None}
    undeclared = [name for name in options.categories if name not in categories]
    if undeclared:
        raise ValueError(f"--category {undeclared[0]} must declare its levels: --category COL=LEVEL,LEVEL")
    return Columns(
        features=features,
        target=options.target,
        exact=False,
        delimiter=options.delimiter or ",",
        decimal=options.decimal or ".",
        categories=categories,
    )


def federated_check(plan: Mapping[str, Any], replies: Replies, run: str) -> dict[str, list[int] | str]:
    """By owner: its answers to the questions about a table of this plan, or why there are none."""
    found = replies(Message(run, 1, CHECK, {}, plan).to_bytes())
    return {name: _answers(name, reply) for name, reply in found.items()}


def _answers(name: str, reply: bytes | EngineError) -> list[int] | str:
    try:
        if isinstance(reply, EngineError):
            raise reply
        answers = read_answer(name, reply).get("answers")
    except EngineError as error:
        return str(error)
    return "no answers" if answers is None else [int(answer) for answer in answers.ravel()]


def federated_fit(plan: Mapping[str, Any], roster: Roster, ask: Ask, run: str, checkpoints: Path) -> Model:
    """Train over the owners of a roster; a fit of the same plan that was interrupted is resumed."""
    columns = Columns.from_json(plan["columns"])
    estimator = make_estimator(FitOptions(**plan["options"]), None)
    declare_ranges(estimator, RangeScaling(**plan["ranges"]))
    keep_to_sums(estimator, Policy().max_weights_per_label)
    folder = checkpoints / plan_digest(plan)

    def make_engine(settings: Settings) -> Any:
        owners = protect(FederationEngine(list(roster.fingerprints), ask, run, plan), policy=True, masked=True)
        if isinstance(settings.solver, PrivateSums):
            return owners  # two rounds, and no checksum of the rows to know them by
        return with_checkpoint(owners, folder, dict(plan), resume=True, every=SAVE_EVERY)

    estimator.fit_over(make_engine, columns.schema, columns.target)
    shutil.rmtree(folder, ignore_errors=True)
    model: Model = estimator.model_
    # What owners' own files add is not told: none can be looser than the defaults.
    about = {
        "roster": dict(roster.fingerprints),
        "plan": plan_digest(plan),
        "masked": True,
        "loosest_policy": Policy().limits(),
    }
    return replace(model, training={**model.training, "federation": about})
