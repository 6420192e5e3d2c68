"""What tuning has chosen, as people and files read it."""

from __future__ import annotations

from dsfr.training import Settings, Training


def tuning_record(training: Training, settings: Settings) -> dict[str, float]:
    """What tuning has chosen: the ridge, and the weight of the penalty on unlabelled rows if there is one."""
    tuned, has_penalty = training.tuned, settings.unlabeled is not None
    if tuned is None:
        weight, ridge = settings.penalty.strength, settings.ridge_value
    else:
        weight, ridge = tuned.unlabeled_weight, tuned.ridge
    chosen = {"ridge": ridge} | ({"unlabeled_weight": weight} if has_penalty else {})
    if tuned is None:
        return chosen
    return chosen | {"noise": tuned.noise * training.predictor.target_scale, "log_evidence": tuned.log_evidence}
