"""The model file: one safetensors file of arrays with JSON metadata, described in docs/model-file.md."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr import __version__
from dsfr.core.arrays import Array
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.prediction.mixture import Member, Mixture, Posterior, Scores
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import MAX_SCALED, Ranges
from dsfr.model.record import check_record, check_width_scale
from dsfr.storage.atomic import replacing
from dsfr.storage.bundles import MAX_BYTES, Bundle, BundleError, from_bytes, read_metadata, to_bytes

FORMAT = 1
"""Of a file with one predictor and no limits, which every version can read."""
MIXTURE_FORMAT = 2
"""Of a file with limits, several predictors or uncertainty."""
MAX_MEMBERS = 1000
NARROWEST = 1e-50
"""Narrowest set that a file may have: from farther than any row, the square of the distance in widths is finite."""
_METADATA = "dsfr"
_CHECKSUM = "sha256"
_KINDS = {"feature_names": list, "target_name": str, "settings": dict, "training": dict}


class ModelFileError(ValueError):
    """A file that cannot be used as a model."""


def write_model_file(path: str | os.PathLike[str], model: Predictor | Mixture, metadata: Mapping[str, Any]) -> Path:
    """Write a predictor, or several, and the metadata."""
    arrays = _to_arrays(model) if isinstance(model, Predictor) else _mixture_to_arrays(model)
    number = FORMAT if isinstance(model, Predictor) and model.limits is None else MIXTURE_FORMAT
    text = json.dumps({"format": number, "version": __version__, **metadata}, sort_keys=True)
    data = to_bytes({**arrays, _CHECKSUM: _digest(arrays, text)}, {_METADATA: text})
    with replacing(path) as file:
        file.write(data)
    return Path(path)


def read_model_file(path: str | os.PathLike[str]) -> tuple[Predictor | Mixture, dict[str, Any]]:
    """Read a predictor, or several, and the metadata, checking everything.

    Raises
    ------
    ModelFileError
        If the file is no model, damaged, altered, or of a newer format.
    """
    if Path(path).stat().st_size > MAX_BYTES:
        raise ModelFileError(f"{path} is larger than {MAX_BYTES} bytes: it is not a dsfr model file")
    data = Path(path).read_bytes()
    try:
        arrays = from_bytes(data)
    except BundleError as error:
        raise ModelFileError(f"{path} is not a dsfr model file, or it is damaged: {error}") from None
    header = read_metadata(data)
    if _METADATA not in header:
        raise ModelFileError(f"{path} is not a dsfr model file: its header does not say so")
    checksum = arrays.pop(_CHECKSUM, np.empty(0))
    if not np.array_equal(checksum, _digest(arrays, header[_METADATA])):
        raise ModelFileError(f"{path} has been altered or damaged since it was written: its checksum differs")
    try:
        metadata = _checked_metadata(header[_METADATA])
        n_features = len(metadata["feature_names"])
        model = _to_mixture(arrays, n_features) if "mixture_shares" in arrays else _to_predictor(arrays, n_features)
        return model, metadata
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def _to_arrays(predictor: Predictor) -> Bundle:
    limits = predictor.limits
    return {
        **predictor.basis.arrays(),
        "low": predictor.ranges.low,
        "high": predictor.ranges.high,
        "weights": predictor.weights,
        "shares": predictor.shares,
        "target": np.array([predictor.target_mean, predictor.target_scale]),
        **({} if limits is None else {"limit_low": limits.low, "limit_high": limits.high}),
    }


def _mixture_to_arrays(mixture: Mixture) -> Bundle:
    """Arrays of all members, each name with the member's number before it."""
    arrays: Bundle = {"mixture_shares": np.array([member.share for member in mixture.members])}
    if mixture.scores is not None:
        arrays |= {"score_thresholds": mixture.scores.thresholds, "score_counts": mixture.scores.counts}
    for number, member in enumerate(mixture.members):
        own = _to_arrays(member.predictor)
        if member.posterior is not None:
            triangle = member.posterior.factor[np.triu_indices(len(member.posterior.factor))]
            own |= {"factor": triangle, "noise": np.array([member.posterior.noise])}
        arrays |= {f"member{number}_{name}": array for name, array in own.items()}
    return arrays


def _to_mixture(arrays: Bundle, n_features: int) -> Mixture:
    shares = arrays["mixture_shares"]
    if shares.ndim != 1 or not 0 < len(shares) <= MAX_MEMBERS or (shares < 0).any() or abs(shares.sum() - 1.0) > 1e-6:
        raise ModelFileError("its shares are not numbers >= 0 that sum to 1")
    members = tuple(_to_member(arrays, number, n_features) for number in range(len(shares)))
    n_known = sum(len(_own(arrays, number)) for number in range(len(shares)))
    scores = _to_scores(arrays)
    if len(arrays) != n_known + (1 if scores is None else 3):
        raise ModelFileError("its arrays have the wrong names or shapes for a model")
    return Mixture(members, scores)


def _own(arrays: Bundle, number: int) -> Bundle:
    """Arrays of one member, by their plain names."""
    prefix = f"member{number}_"
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _to_member(arrays: Bundle, number: int, n_features: int) -> Member:
    own = _own(arrays, number)
    factor, noise = own.pop("factor", None), own.pop("noise", None)
    predictor = _to_predictor(own, n_features)
    share = float(arrays["mixture_shares"][number])
    if factor is None and noise is None:
        return Member(predictor, share)
    p = len(predictor.weights)
    if factor is None or noise is None or factor.shape != (p * (p + 1) // 2,) or noise.shape != (1,) or noise[0] < 0:
        raise ModelFileError("its arrays have the wrong names or shapes for a model")
    upper = np.zeros((p, p))
    upper[np.triu_indices(p)] = factor
    if not (np.diag(upper) > 0).all():
        raise ModelFileError("its uncertainty is not that of any weights")
    return Member(predictor, share, Posterior(upper, float(noise[0])))


def _to_scores(arrays: Bundle) -> Scores | None:
    thresholds, counts = arrays.get("score_thresholds"), arrays.get("score_counts")
    if thresholds is None and counts is None:
        return None
    if thresholds is None or counts is None or thresholds.ndim != 1 or thresholds.shape != counts.shape:
        raise ModelFileError("its arrays have the wrong names or shapes for a model")
    ascending = all((np.diff(values) >= 0).all() and (values >= 0).all() for values in (thresholds, counts))
    if not len(counts) or not ascending or counts[-1] < 1:
        raise ModelFileError("its counts of errors are not counts")
    return Scores(thresholds, counts)


def _to_predictor(arrays: Bundle, n_features: int) -> Predictor:
    is_rules = "centers" in arrays
    basis_names = ("centers", "widths") if is_rules else ("dilations", "translations")
    _check_arrays(arrays, basis_names, n_features, is_rules=is_rules)
    first, second = (arrays[name] for name in basis_names)
    mean, scale = (float(value) for value in arrays["target"])
    made = Predictor(
        ranges=Ranges(arrays["low"], arrays["high"]),
        basis=Rules(first, second) if is_rules else Wavelets(first, second),
        weights=arrays["weights"],
        target_mean=mean,
        target_scale=scale,
        shares=arrays["shares"],
        limits=Ranges(arrays["limit_low"], arrays["limit_high"]) if "limit_low" in arrays else None,
    )
    _check_numbers(made, *((first, second) if is_rules else (second, first)))
    return made


def _check_arrays(arrays: Bundle, basis_names: tuple[str, str], n_features: int, *, is_rules: bool) -> None:
    """Refuse other names, shapes and types than those of one predictor."""
    n_units = (arrays.get(basis_names[0], np.empty(0)).shape or (0,))[0]
    shapes = dict.fromkeys(basis_names, (n_units, n_features)) | {
        "low": (n_features,),
        "high": (n_features,),
        "weights": (n_units * (n_features + 1) if is_rules else n_units,),
        "shares": (n_units if is_rules else 0,),
        "target": (2,),
        **({name: (n_features,) for name in ("limit_low", "limit_high")} if "limit_low" in arrays else {}),
    }
    if {name: array.shape for name, array in arrays.items()} != shapes or 0 in (n_units, n_features):
        raise ModelFileError("its arrays have the wrong names or shapes for a model")
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise ModelFileError("its arrays are not all float64")


def _check_numbers(predictor: Predictor, places: Array, divisors: Array) -> None:
    """Refuse numbers that no training gives, and with which predictions would overflow or be NaN."""
    scale, shares, limits = predictor.target_scale, predictor.shares, predictor.limits
    in_order = (predictor.ranges.low <= predictor.ranges.high).all()
    if not ((divisors > 0).all() and scale > 0 and (shares >= 0).all() and in_order):
        raise ModelFileError("its widths, scales, shares or ranges are not positive")
    with np.errstate(over="ignore"):
        farthest = abs(predictor.target_mean) + scale * np.abs(predictor.weights).sum()
        if len(shares) and not 0 < shares.sum() < np.inf:
            raise ModelFileError("its rules' shares do not add up to a part of the rows")
    if (divisors < NARROWEST).any() or (np.abs(places) > MAX_SCALED).any() or not np.isfinite(farthest):
        raise ModelFileError("its numbers are too large or too small to compute with")
    if limits is not None and not (limits.low <= limits.high).all():
        raise ModelFileError("its limits are not in order")


def _checked_metadata(text: str) -> dict[str, Any]:
    try:
        # JSON proper has no NaN or infinity, though Python reads them: they are numbers that nobody knows.
        metadata = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its metadata is not JSON: {error}") from None
    if not isinstance(metadata, dict) or metadata.get("format") not in (FORMAT, MIXTURE_FORMAT):
        found = metadata.get("format") if isinstance(metadata, dict) else None
        raise ModelFileError(
            f"it has model format {found}, this version of dsfr ({__version__}) reads formats {FORMAT} and "
            f"{MIXTURE_FORMAT}: upgrade dsfr, or train again"
        )
    for name, kind in _KINDS.items():
        if not isinstance(metadata.get(name), kind):
            raise ModelFileError(f"its metadata lacks {name!r}, or has it of the wrong kind")
    if not all(isinstance(name, str) for name in metadata["feature_names"]):
        raise ModelFileError("its feature names are not all text")
    try:
        check_width_scale(metadata["settings"])
        check_record(metadata["training"])
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    return metadata


def _digest(arrays: Bundle, text: str) -> npt.NDArray[np.uint8]:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)
