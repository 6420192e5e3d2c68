"""The model file: one safetensors file of arrays with JSON metadata, described in docs/model-file.md."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr import __version__
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.prediction.bounds import check_mixture, check_predictor
from dsfr.core.prediction.mixture import Member, Mixture, Posterior, Scores
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import Ranges
from dsfr.model.record import check_record, check_width_scale
from dsfr.storage.atomic import replacing
from dsfr.storage.bundles import MAX_BYTES, Bundle, BundleError, from_bytes, read_metadata, to_bytes

FORMAT = 1
"""Of a file with one predictor and no limits, which every version can read."""
MIXTURE_FORMAT = 2
"""Of a file with limits, several predictors or uncertainty."""
MAX_MEMBERS = 1000
MAX_INTEGER = 2**64
"""Of whole numbers in the metadata; seeds may have 64 bits."""
_METADATA = "dsfr"
_CHECKSUM = "sha256"
_KINDS = {"feature_names": list, "target_name": str, "settings": dict, "training": dict}


class ModelFileError(ValueError):
    """A file that cannot be used as a model."""


def write_model_file(path: str | os.PathLike[str], model: Predictor | Mixture, metadata: Mapping[str, Any]) -> Path:
    """Write a predictor, or several, and the metadata.

    Raises
    ------
    ModelFileError
        If the model has numbers with which no reader would accept it.
    """
    _check_numbers(model)
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
        _check_numbers(model)
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
    return Member(predictor, share, Posterior(upper, float(noise[0])))


def _to_scores(arrays: Bundle) -> Scores | None:
    thresholds, counts = arrays.get("score_thresholds"), arrays.get("score_counts")
    if thresholds is None and counts is None:
        return None
    if thresholds is None or counts is None or thresholds.ndim != 1 or thresholds.shape != counts.shape:
        raise ModelFileError("its arrays have the wrong names or shapes for a model")
    return Scores(thresholds, counts)


def _to_predictor(arrays: Bundle, n_features: int) -> Predictor:
    is_rules = "centers" in arrays
    basis_names = ("centers", "widths") if is_rules else ("dilations", "translations")
    _check_arrays(arrays, basis_names, n_features, is_rules=is_rules)
    first, second = (arrays[name] for name in basis_names)
    mean, scale = (float(value) for value in arrays["target"])
    return Predictor(
        ranges=Ranges(arrays["low"], arrays["high"]),
        basis=Rules(first, second) if is_rules else Wavelets(first, second),
        weights=arrays["weights"],
        target_mean=mean,
        target_scale=scale,
        shares=arrays["shares"],
        limits=Ranges(arrays["limit_low"], arrays["limit_high"]) if "limit_low" in arrays else None,
    )


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


def _check_numbers(model: Predictor | Mixture) -> None:
    try:
        if isinstance(model, Predictor):
            check_predictor(model)
        else:
            check_mixture(model)
    except ValueError as error:
        raise ModelFileError(str(error)) from None


def _checked_metadata(text: str) -> dict[str, Any]:
    try:
        # JSON proper has no NaN or infinity, though Python reads them: they are numbers that nobody knows.
        metadata = json.loads(text, parse_constant=lambda _: None, parse_float=_finite, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its metadata is not JSON, or has numbers out of range: {error}") from None
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


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is beyond double precision")
    return value


def _integer(text: str) -> int:
    value = int(text)
    if abs(value) >= MAX_INTEGER:
        raise ValueError(f"{text[:20]}... has more than 64 bits")
    return value


def _digest(arrays: Bundle, text: str) -> npt.NDArray[np.uint8]:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)
