"""Results on disk: one small file per unit while an experiment runs, one tidy Parquet table once it is complete.

``<name>.parquet`` has one row per measurement, ``<name>.json`` has the metadata. While the experiment is incomplete,
``<name>.parts`` holds the results of its units, from which a later run resumes. Results of different versions, specs or
commits are never mixed in one table, and never overwritten unless the caller asks for it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from dsfr import __version__
from dsfr.paper.experiments.folds import Unit, units
from dsfr.paper.experiments.provenance import describe_machine, describe_source
from dsfr.paper.experiments.spec import Spec
from dsfr.storage.atomic import replacing

Row = dict[str, Any]


class ResultsError(ValueError):
    """Results are missing, damaged, or belong to another version or spec."""


@dataclass(frozen=True, slots=True)
class Store:
    """Stored results of one experiment."""

    folder: Path
    spec: Spec
    fingerprint: str

    @classmethod
    def open(cls, folder: str | Path, spec: Spec, needed: str = "", *, force: bool = False) -> Store:
        """Open the results of an experiment; ``force`` removes those of another version or spec.

        Raises
        ------
        ResultsError
            If there are results of another version or spec, or incomplete ones of another commit.
        """
        store = cls(Path(folder), spec, spec.fingerprint(needed))
        store.folder.mkdir(parents=True, exist_ok=True)
        for path in (store.metadata_path, store.parts / "run.json"):
            if path.exists():
                store._check_same(path, force=force)
        return store

    @property
    def table_path(self) -> Path:
        """Table of the complete results."""
        return self.folder / f"{self.spec.name}.parquet"

    @property
    def metadata_path(self) -> Path:
        """Metadata of the complete results."""
        return self.folder / f"{self.spec.name}.json"

    @property
    def parts(self) -> Path:
        """Folder of the results of single units."""
        return self.folder / f"{self.spec.name}.parts"

    @property
    def complete(self) -> bool:
        """Whether all units are stored."""
        return self.metadata_path.exists() and self.table_path.exists()

    def missing(self) -> list[Unit]:
        """Units that have no stored results."""
        if self.complete:
            return []
        return [unit for unit in units(self.spec) if not self._part(unit).exists()]

    def begin(self) -> None:
        """Create the folder of parts and record spec and version in it."""
        self.parts.mkdir(exist_ok=True)
        _write_json(self.parts / "run.json", self._identity())

    def write(self, unit: Unit, rows: Sequence[Row], seconds: float) -> None:
        """Store the rows of one unit."""
        _write_json(self._part(unit), {"seconds": round(seconds, 3), "rows": list(rows)})

    def seconds(self) -> dict[Unit, float]:
        """Computing time of every stored unit."""
        stored = [unit for unit in units(self.spec) if self._part(unit).exists()]
        return {unit: float(self._read_part(unit)["seconds"]) for unit in stored}

    def finish(self, *, jobs: int, wall_seconds: float | None) -> None:
        """Combine all parts into one table, ordered by unit, and remove them."""
        rows, seconds = [], 0.0
        for unit in sorted(units(self.spec), key=lambda unit: (unit.dataset, unit.repetition, unit.fold)):
            part = self._read_part(unit)
            seconds += float(part["seconds"])
            keys = {"dataset": unit.dataset, "repetition": unit.repetition, "fold": unit.fold}
            rows += [keys | row for row in part["rows"]]
        _write_parquet(self.table_path, rows)
        effort = {"jobs": jobs, "core_seconds": round(seconds, 1), "wall_seconds": wall_seconds, "rows": len(rows)}
        _write_json(self.metadata_path, {**self._identity(), **effort, "machine": describe_machine()})
        shutil.rmtree(self.parts)

    def _identity(self) -> dict[str, Any]:
        return {"fingerprint": self.fingerprint, **describe_source(), "spec": asdict(self.spec)}

    def _part(self, unit: Unit) -> Path:
        return self.parts / f"{unit.name}.json"

    def _read_part(self, unit: Unit) -> dict[str, Any]:
        path = self._part(unit)
        try:
            part: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise ResultsError(f"{path} cannot be read ({error}): delete it and run again") from None
        return part

    def _check_same(self, path: Path, *, force: bool) -> None:
        found, here = read_metadata(path), describe_source()
        origin = None
        if found.get("version") != __version__:
            origin = f"dsfr {found.get('version')} (this is dsfr {__version__})"
        elif found.get("fingerprint") != self.fingerprint:
            origin = f"another spec (this is dsfr {__version__})"
        elif path != self.metadata_path and found.get("git") != here["git"]:
            # Complete results say which commit they are of; those of two commits would not.
            origin = f"commit {found.get('git')}, incomplete (this is {here['git']})"
        if origin is None:
            return
        if force:
            self._remove()
            return
        raise ResultsError(
            f"{self.folder} holds results of {self.spec.name!r} made by {origin}: write to another folder with "
            "--output, or give --force to replace them"
        )

    def _remove(self) -> None:
        self.table_path.unlink(missing_ok=True)
        self.metadata_path.unlink(missing_ok=True)
        shutil.rmtree(self.parts, ignore_errors=True)


def read_metadata(path: Path) -> dict[str, Any]:
    """Read the metadata of results.

    Raises
    ------
    ResultsError
        If the file is damaged.
    """
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read ({error}): restore it, or write to another folder") from None


def read_results(folder: str | Path, name: str) -> list[Row]:
    """Read all rows of a complete experiment.

    Raises
    ------
    ResultsError
        If there are none, or the table is damaged.
    """
    path = Path(folder) / f"{name}.parquet"
    if not path.exists():
        raise ResultsError(f"{folder} has no complete results of {name!r}: run 'dsfr reproduce' first")
    try:
        rows: list[Row] = pa.parquet.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ResultsError(f"{path} cannot be read ({error}): restore it, or run again in another folder") from None
    return rows


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as file:
        file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def _write_parquet(path: Path, rows: Iterable[Row]) -> None:
    with replacing(path) as file:
        pa.parquet.write_table(pa.Table.from_pylist(list(rows)), file, compression="zstd", compression_level=15)
