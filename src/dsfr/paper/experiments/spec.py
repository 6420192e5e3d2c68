"""Specification of an experiment, read from a TOML file and validated."""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dsfr.paper.datasets import NAMES

PARTITIONS = ("random", "column", "cluster", "dirichlet")
KINDS = (
    "grid",
    "baselines",
    "fits",
    "admm",
    "convergence",
    "deviations",
    "complexity",
    "penalties",
    "pairs",
    "rules",
    "agents",
)


class SpecError(ValueError):
    """The spec is invalid; the message names the key and the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Settings of one experiment; defaults are the paper's protocol."""

    name: str
    kind: str
    """Kind of experiment, a key of `dsfr.paper.experiments.runners.RUNNERS`."""
    title: str = ""
    datasets: tuple[str, ...]
    repetitions: int = 10
    folds: int = 5
    test_folds: int = 5
    """Number of folds that are tested, from the first."""
    labels: int = 50
    agents: int = 5
    rules: int = 5
    nodes: int = 100
    fuzzifier: float = 1.1
    tol: float = 1e-4
    ridge: float = 0.1
    consistency: float = 0.1
    grid: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    values: tuple[int, ...] = ()
    """Numbers of pairs, rules or agents to compare."""
    label_counts: tuple[int, ...] = ()
    """Numbers of labels to compare."""
    partitions: tuple[str, ...] = ("random",)
    max_rounds: int = 300
    """Limit of rounds of the paper's plain ADMM."""
    alphas: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
    """Ridge penalties of the linear baseline."""
    trees: int = 100
    needs: str = ""
    """Name of the experiment whose results this one uses."""
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.name, "kind", self.kind, KINDS)
        for dataset in self.datasets:
            _check(self.name, "datasets", dataset, NAMES)
        for partition in self.partitions:
            _check(self.name, "partitions", partition, PARTITIONS)
        for count in (
            "repetitions",
            "folds",
            "test_folds",
            "labels",
            "agents",
            "rules",
            "nodes",
            "max_rounds",
            "trees",
        ):
            if getattr(self, count) < 1:
                raise SpecError(f"{self.name}: {count} = {getattr(self, count)} must be a whole number >= 1")
        if self.folds < 2 or self.test_folds > self.folds:
            raise SpecError(f"{self.name}: folds must be >= 2 and test_folds = {self.test_folds} at most {self.folds}")
        if not self.datasets or not all(value > 0 for value in (*self.grid, *self.alphas, *self.values)):
            raise SpecError(f"{self.name}: datasets must not be empty, and numbers in grid, alphas and values be > 0")

    def fingerprint(self, needed: str = "") -> str:
        """Checksum of everything the results depend on; ``needed`` is the checksum of the experiment this one uses."""
        settings = {name: value for name, value in asdict(self).items() if name != "title"}
        return hashlib.sha256(json.dumps([settings, needed], sort_keys=True).encode()).hexdigest()


def read_spec(path: str | Path, *, quick: bool = False) -> Spec:
    """Read the spec of a TOML file; in a quick run its table ``[quick]`` replaces values.

    Raises
    ------
    SpecError
        If the spec is invalid; the message names the file, the key and the rule.
    """
    path = Path(path)
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is not a TOML file: {error}") from None
    quick_values = table.pop("quick", {})
    if not isinstance(quick_values, dict):
        raise SpecError(f"{path}: quick must be a table of values that replace others")
    merged = {"name": path.stem, **table, **(quick_values if quick else {})}
    return _from_table(path, merged, table | quick_values)


def read_specs(place: str | Path, *, quick: bool = False) -> list[Spec]:
    """Read the specs of a folder or of one file; each comes after the experiment it needs."""
    place = Path(place)
    paths = sorted(place.glob("*.toml")) if place.is_dir() else [place]
    if not paths or not place.exists():
        raise SpecError(f"{place} holds no experiment: give a TOML file, or a folder with some")
    specs = {path.stem: read_spec(path, quick=quick) for path in paths}
    ordered: dict[str, Spec] = {}
    for spec in specs.values():
        if spec.needs and spec.needs in specs:
            ordered.setdefault(spec.needs, specs[spec.needs])
        ordered.setdefault(spec.name, spec)
    return sorted(ordered.values(), key=lambda spec: bool(spec.needs))


def find_specs() -> Path:
    """The paper's experiments: of the folder one is in, of the installed package, or of its checkout."""
    package = Path(__file__).resolve().parents[2]
    places = (Path("experiments"), package / "specs", package.parents[1] / "experiments")
    for place in places:
        if (place / "grid.toml").is_file():
            return place
    raise SpecError("no specs of the paper's experiments are installed: give a TOML file, or a folder with some")


def _from_table(path: Path, merged: dict[str, Any], given: dict[str, Any]) -> Spec:
    known = {field.name: str(field.type) for field in fields(Spec) if field.name != "name"}
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f": did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
            raise SpecError(f"{path}: unknown key {key!r}{hint}")
    for key in ("kind", "datasets"):
        if key not in merged:
            raise SpecError(f"{path}: the key {key!r} is missing")
    return Spec(**{key: _typed(path, key, value, known.get(key, "str")) for key, value in merged.items()})


def _typed(path: Path, key: str, value: Any, wanted: str) -> Any:
    """The value converted to the type of its field; lists become tuples."""
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (float, int)}
    inner = wanted.removeprefix("tuple[").removesuffix(", ...]")
    many = inner != wanted
    items = value if many and isinstance(value, list) else [value]
    good = isinstance(value, list) == many
    if not good or not all(isinstance(item, kinds[inner]) and not isinstance(item, bool) for item in items):
        expected = f"a list of {inner}" if many else inner
        raise SpecError(f"{path}: {key} = {value!r} must be {expected}")
    if inner == "float":
        items = [float(item) for item in items]
    return tuple(items) if many else items[0]


def _check(name: str, key: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SpecError(f"{name}: {key} = {value!r} must be one of {', '.join(choices)}")
