"""The model file: one safetensors file of arrays with JSON metadata, described in docs/model-file.md."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr import __version__
from dsfr.core.density import RowDensity
from dsfr.core.features.bases import AnyBasis, basis_of
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.prediction.bounds import check_mixture
from dsfr.core.prediction.link import Link
from dsfr.core.prediction.mixture import Member, Mixture
from dsfr.core.prediction.posterior import Posterior
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.scores import Scores
from dsfr.core.scaling.affine import Ranges
from dsfr.model.record import check_record, check_student, check_width_scale
from dsfr.model.schema import Schema
from dsfr.storage.atomic import replacing
from dsfr.storage.bundles import MAX_BYTES, Bundle, BundleError, from_bytes, read_metadata, to_bytes

FORMAT = 3
"""Number of the format; readers refuse every other."""
MAX_MEMBERS = 1000
MAX_INTEGER = 2**64
"""Bound of whole numbers in the metadata; seeds may have 64 bits."""
WRONG_ARRAYS = "its arrays have the wrong names or shapes for a model"
DENSITY = ("mean", "deviation", "low", "high", "spread", "shift")
"""Arrays of the distribution of the rows that have a number for each feature."""
_METADATA = "dsfr"
_CHECKSUM = "sha256"
_KINDS = {"feature_names": list, "target_name": str, "settings": dict, "training": dict}


class ModelFileError(ValueError):
    """A file that cannot be used as a model."""


def write_model_file(path: str | os.PathLike[str], mixture: Mixture, metadata: Mapping[str, Any]) -> Path:
    """Write a mixture and the metadata.

    Raises
    ------
    ModelFileError
        If the model has numbers that readers would refuse.
    """
    _check_numbers(mixture)
    arrays = _to_arrays(mixture)
    text = json.dumps({"format": FORMAT, "version": __version__, **metadata}, sort_keys=True)
    data = to_bytes({**arrays, _CHECKSUM: _digest(arrays, text)}, {_METADATA: text})
    with replacing(path) as file:
        file.write(data)
    return Path(path)


def read_model_file(path: str | os.PathLike[str]) -> tuple[Mixture, dict[str, Any]]:
    """Read a mixture and the metadata, and check both.

    Raises
    ------
    ModelFileError
        If the file is no model, damaged, altered, or of another format.
    """
    arrays, text = _read_arrays(path)
    try:
        metadata = _checked_metadata(text)
        mixture = _to_mixture(arrays, len(metadata["feature_names"]))
        _check_numbers(mixture)
        _check_student(mixture, metadata["training"])
        return mixture, metadata
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def _read_arrays(path: str | os.PathLike[str]) -> tuple[Bundle, str]:
    """Arrays and metadata of a file whose checksum is right."""
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
    return arrays, header[_METADATA]


def _to_arrays(mixture: Mixture) -> Bundle:
    """Arrays of all members, each with the member's number before its name."""
    arrays: Bundle = {"mixture_shares": np.array([member.share for member in mixture.members])}
    if mixture.scores is not None:
        arrays |= {"score_thresholds": mixture.scores.thresholds, "score_counts": mixture.scores.counts}
        arrays["score_deviation"] = np.array([mixture.scores.typical_deviation])
        if mixture.scores.rule_deviations is not None:
            arrays["score_rules"] = mixture.scores.rule_deviations
    if mixture.density is not None:
        arrays |= {f"density_{name}": array for name, array in mixture.density.arrays().items()}
    seen = mixture.members[0].predictor.seen
    if seen is not None:
        arrays |= {"domain_low": seen.low, "domain_high": seen.high}
    if not mixture.link.is_identity:
        link = mixture.link
        numbers = [float(link.is_log), link.factor, link.low, link.high, link.floor, link.ceiling]
        arrays["target_link"] = np.array(numbers)
    for number, member in enumerate(mixture.members):
        arrays |= {f"member{number}_{name}": array for name, array in _member_arrays(member).items()}
    return arrays


def _member_arrays(member: Member) -> Bundle:
    predictor, limits, posterior = member.predictor, member.predictor.limits, member.posterior
    arrays = {
        **predictor.basis.arrays(),
        "low": predictor.ranges.low,
        "high": predictor.ranges.high,
        "weights": predictor.weights,
        "shares": predictor.shares,
        "target": np.array([predictor.target_mean, predictor.target_scale]),
    }
    if limits is not None:
        arrays |= {"limit_low": limits.low, "limit_high": limits.high}
    if posterior is not None:
        triangle = posterior.factor[np.triu_indices(len(posterior.factor))]
        arrays |= {"factor": triangle, "noise": np.array([posterior.noise])}
    return arrays


def _to_mixture(arrays: Bundle, n_features: int) -> Mixture:
    if any(array.dtype != _dtype_of(name) for name, array in arrays.items()):
        raise ModelFileError("its arrays are not all of the type that they must have")
    shares = arrays.pop("mixture_shares", np.empty(0))
    if shares.ndim != 1 or not 0 < len(shares) <= MAX_MEMBERS:
        raise ModelFileError(WRONG_ARRAYS)
    scores = _to_scores(_take_prefixed(arrays, "score_"))
    density = _to_density(_take_prefixed(arrays, "density_"), n_features)
    seen = _to_seen(_take_prefixed(arrays, "domain_"), n_features)
    link = _to_link(arrays.pop("target_link", None))
    parts = [_take_prefixed(arrays, f"member{number}_") for number in range(len(shares))]
    if arrays:
        raise ModelFileError(WRONG_ARRAYS)
    members = (_to_member(part, share, n_features, seen) for part, share in zip(parts, shares.tolist(), strict=True))
    return Mixture(tuple(members), scores, link, density)


def _to_link(numbers: npt.NDArray[Any] | None) -> Link:
    if numbers is None:
        return Link()
    if numbers.shape != (6,) or numbers[0] not in (0.0, 1.0):
        raise ModelFileError(WRONG_ARRAYS)
    is_log, *others = numbers.tolist()
    return Link(bool(is_log), *others)


def _dtype_of(name: str) -> npt.DTypeLike:
    """Type of an array: numbers, numbers of features and terms, or the letters of the name of a membership function."""
    if name.endswith(("_singles", "_pairs", "_triples", "_levels")):
        return np.int64
    return np.uint8 if name.endswith("_membership") else np.float64


def _take_prefixed(arrays: Bundle, prefix: str) -> Bundle:
    """Take the arrays whose names have a prefix out of a bundle; named without it."""
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays.pop(name) for name in names}


def _to_scores(arrays: Bundle) -> Scores | None:
    if not arrays:
        return None
    by_rule = arrays.pop("rules", None)
    if set(arrays) != {"thresholds", "counts", "deviation"}:
        raise ModelFileError(WRONG_ARRAYS)
    thresholds, counts, deviation = arrays["thresholds"], arrays["counts"], arrays["deviation"]
    if thresholds.ndim != 1 or thresholds.shape != counts.shape or deviation.shape != (1,):
        raise ModelFileError(WRONG_ARRAYS)
    return Scores(thresholds, counts, float(deviation[0]), by_rule)


def _to_density(arrays: Bundle, n_features: int) -> RowDensity | None:
    if not arrays:
        return None
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(DENSITY, (n_features,))
    if "correlation" in arrays:
        shapes["correlation"] = (n_features * (n_features + 1) // 2,)
    if {name: array.shape for name, array in arrays.items()} != shapes:
        raise ModelFileError(WRONG_ARRAYS)
    return RowDensity.of_arrays(arrays)


def _to_seen(arrays: Bundle, n_features: int) -> Ranges | None:
    if not arrays:
        return None
    if {name: array.shape for name, array in arrays.items()} != dict.fromkeys(("low", "high"), (n_features,)):
        raise ModelFileError(WRONG_ARRAYS)
    return Ranges(**arrays)


def _to_member(arrays: Bundle, share: float, n_features: int, seen: Ranges | None) -> Member:
    factor, noise = arrays.pop("factor", None), arrays.pop("noise", None)
    predictor = replace(_to_predictor(arrays, n_features), seen=seen)
    if factor is None and noise is None:
        return Member(predictor, share)
    p = len(predictor.weights)
    if factor is None or noise is None or factor.shape != (p * (p + 1) // 2,) or noise.shape != (1,):
        raise ModelFileError(WRONG_ARRAYS)
    upper = np.zeros((p, p))
    upper[np.triu_indices(p)] = factor
    return Member(predictor, share, Posterior(upper, float(noise[0])))


def _to_predictor(arrays: Bundle, n_features: int) -> Predictor:
    try:
        basis = basis_of(arrays)
    except ValueError as error:
        raise ModelFileError(f"{WRONG_ARRAYS}: {error}") from None
    _check_arrays(arrays, basis, n_features)
    mean, scale = (float(value) for value in arrays["target"])
    return Predictor(
        ranges=Ranges(arrays["low"], arrays["high"]),
        basis=basis,
        weights=arrays["weights"],
        target_mean=mean,
        target_scale=scale,
        shares=arrays["shares"],
        limits=Ranges(arrays["limit_low"], arrays["limit_high"]) if "limit_low" in arrays else None,
    )


def _check_arrays(arrays: Bundle, basis: AnyBasis, n_features: int) -> None:
    """Refuse other names and shapes than those of one predictor."""
    n_units = (basis.locations.shape or (0,))[0]
    if 0 in (n_units, n_features):
        raise ModelFileError(WRONG_ARRAYS)
    shapes = {name: array.shape for name, array in basis.arrays().items()} | {
        **dict.fromkeys(basis.unit_arrays, (n_units, n_features)),
        "low": (n_features,),
        "high": (n_features,),
        "weights": (basis.n_outputs,),
        "shares": (basis.n_rules,),
        "target": (2,),
        **({name: (n_features,) for name in ("limit_low", "limit_high")} if "limit_low" in arrays else {}),
    }
    if {name: array.shape for name, array in arrays.items()} != shapes:
        raise ModelFileError(WRONG_ARRAYS)


def _check_numbers(mixture: Mixture) -> None:
    """Refuse numbers with which nothing can be computed, see `dsfr.core.prediction.bounds`."""
    try:
        check_mixture(mixture)
    except ValueError as error:
        raise ModelFileError(str(error)) from None


def _check_student(mixture: Mixture, training: Mapping[str, Any]) -> None:
    """Refuse rules over shared terms without the record of their training, and beside other members."""
    students = [member for member in mixture.members if isinstance(member.predictor.basis, LinguisticRules)]
    if not students:
        return
    if len(mixture.members) > 1:
        raise ModelFileError("it averages rules over shared terms with others")
    predictor = students[0].predictor
    try:
        check_student(training.get("student"), predictor.basis.n_rules, predictor.n_features)
    except ValueError as error:
        raise ModelFileError(str(error)) from None


def _checked_metadata(text: str) -> dict[str, Any]:
    try:
        # JSON has no NaN or infinity, though Python reads them: they stand for unknown numbers.
        metadata = json.loads(text, parse_constant=lambda _: None, parse_float=_finite, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its metadata is not JSON, or has numbers out of range: {error}") from None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        found = metadata.get("format") if isinstance(metadata, dict) else None
        raise ModelFileError(
            f"it has model format {found}, this version of dsfr ({__version__}) reads format {FORMAT}: "
            "upgrade dsfr if the number is larger, else train again"
        )
    for name, kind in _KINDS.items():
        if not isinstance(metadata.get(name), kind):
            raise ModelFileError(f"its metadata lacks {name!r}, or has it of the wrong kind")
    if not all(isinstance(name, str) for name in metadata["feature_names"]):
        raise ModelFileError("its feature names are not all text")
    try:
        check_width_scale(metadata["settings"])
        check_record(metadata["training"])
        _check_columns(metadata)
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    return metadata


def _check_columns(metadata: Mapping[str, Any]) -> None:
    """Refuse columns that do not make the features of the model."""
    if "columns" not in metadata:
        return
    if list(Schema.from_json(metadata["columns"]).feature_names) != metadata["feature_names"]:
        raise ValueError("its columns do not make its features")


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
