"""Levels of categories that all processes agree on, declared or found by counting the rows of every file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dsfr.io.agent_files import Columns, check_agent_file
from dsfr.io.columns import TableError, listed
from dsfr.io.survey import Source, count_levels, merged, settled_schema, text_columns
from dsfr.model.kinds import ColumnSurvey
from dsfr.model.schema import Schema
from dsfr.pipeline.options import FitOptions
from dsfr.pipeline.processes import Processes


def agree_categories(
    files: Sequence[Path], columns: Columns, options: FitOptions, processes: Processes, *, may_count: bool
) -> Columns:
    """The columns with the levels of their categories.

    Raises
    ------
    TableError
        If a column cannot be used, or levels are not declared where rows may not be counted.
    """
    source = Source(tuple(files), columns.features, columns.delimiter, columns.decimal)
    own = processes.run_on_all(lambda: _text_columns(source, columns, options))
    texts = {name for rank in range(processes.size) for name in json.loads(processes.broadcast(own, rank))}
    if texts and not may_count:
        raise TableError(
            f"column(s) {listed(sorted(texts))} are no numbers, and under a policy nobody counts their levels: declare "
            "them, --category COL=LEVEL,LEVEL, or leave them out (--ignore)"
        )
    counts = processes.run_on_all(lambda: _counts(source, sorted(texts)))
    every = merged([_surveys(processes.broadcast(counts, rank)) for rank in range(processes.size)])
    explicit, is_first = bool(options.features), processes.rank == 0

    def settled() -> str:
        found = settled_schema(source, options.categories, every, explicit=explicit) if is_first else Schema(())
        return json.dumps(found.to_json())

    schema = Schema.from_json(json.loads(processes.broadcast(processes.run_on_all(settled), 0)))
    left_out = [name for name in columns.features if name not in schema.names]
    ignored = (*columns.ignored, *left_out)
    return replace(columns, features=schema.names, categories=schema.categories, ignored=ignored)


def _text_columns(source: Source, columns: Columns, options: FitOptions) -> str:
    """Columns of the own files whose values must be counted, as text; files that lack some are refused."""
    for file in source.files:
        check_agent_file(file, columns)
    return json.dumps(text_columns(source, options.categories))


def _counts(source: Source, names: Sequence[str]) -> str:
    """Counts of the values of columns of the own files, as text."""
    found = count_levels(source, names)
    return json.dumps({name: [survey.holds, survey.counts] for name, survey in found.items()})


def _surveys(text: str) -> dict[str, ColumnSurvey]:
    """The counts that a text has."""
    surveys = {}
    for name, (holds, counts) in json.loads(text).items():
        surveys[name] = ColumnSurvey(name, holds=holds)
        surveys[name].add(counts)
    return surveys
