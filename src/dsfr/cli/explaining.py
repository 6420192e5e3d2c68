"""Commands that make a model readable: explain, simplify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dsfr.cli.group import BadInputError, dialect_options, examples, guessed_dialect, main, refuse_same_file
from dsfr.cli.noise import input_noise, noise_option


@main.command(
    short_help="Print a model as sentences, or explain a prediction.",
    epilog=examples(
        "dsfr explain houses.dsfr",
        "dsfr explain houses.dsfr houses.csv",
        "dsfr explain houses.dsfr --row houses.csv:17",
        "dsfr explain houses.dsfr --format csv > rules.csv",
        "dsfr explain houses.dsfr --as-file edited.yaml",
    ),
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--row", metavar="FILE:N", help="Explain the prediction of row N (the first is 1) of a table instead.")
@click.option(
    "--format", "form", default="text", show_default=True, type=click.Choice(["text", "csv", "json"]), help="Output."
)
@click.option(
    "--as-file",
    metavar="FILE",
    help="Write the words and thresholds of short rules into a file, to be edited and given to dsfr fit --rules.",
)
@click.option("--all-models", is_flag=True, help="The rules of all models of an average, not of the strongest only.")
@noise_option
@dialect_options
def explain(
    model: str,
    data: str | None,
    row: str | None,
    form: str,
    as_file: str | None,
    all_models: bool,
    input_std: tuple[str, ...],
    delimiter: str | None,
    decimal: str | None,
) -> None:
    """Print the effects and rules of MODEL as sentences, in the units of the data, or explain one prediction.

    With DATA, low and high refer to the distribution of its rows, and every rule names its most typical rows. Of a row
    with empty cells, or with the noise of --input-std, the expected prediction is explained.
    """
    from dsfr.model.explanation import Explanation
    from dsfr.model.model import load
    from dsfr.model.participants import participant_notes

    if row is not None and data is not None:
        raise BadInputError("--row names a table of its own: leave out DATA, or --row")
    if row is None and input_std:
        raise BadInputError("--input-std is for --row: rules do not depend on the noise of inputs")
    loaded = load(model)
    if row is not None:
        noise = input_noise(input_std, loaded.feature_names)
        explained = loaded.explain_prediction(_row_of(row, loaded, delimiter, decimal), noise)
        _print(str(explained), _parts(explained), form)
        return
    if as_file is not None:
        _write_edits(loaded, as_file)
    rows = None if data is None else _matrix_of(data, loaded, delimiter, decimal)[0]
    rules = loaded.explain(rows, all_models=all_models)
    end = "".join(f"\n\n{note}" for note in participant_notes(loaded.training))
    if not isinstance(rules, Explanation):
        _print(f"{rules}{end}", rules.to_records(), form)
        return
    effects = [] if rules.effects is None else rules.effects.to_records()
    _print(f"{_introduction(loaded, rules, all_models)}\n\n{rules}{end}", [*effects, *rules.to_records()], form)


@main.command(
    short_help="Write a model with fewer rules and sets.",
    epilog=examples(
        "dsfr simplify houses.dsfr -o simple.dsfr",
        "dsfr simplify houses.dsfr houses.csv --similarity 0.6 -o simple.dsfr",
    ),
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the simpler model goes.")
@click.option(
    "--similarity", default=0.8, show_default=True, help="Sets of a feature at least as alike as this become one."
)
@click.option(
    "--min-strength", default=0.01, show_default=True, help="Rules that count for less on every row are dropped."
)
@dialect_options
def simplify(
    model: str,
    data: str | None,
    output: str,
    similarity: float,
    min_strength: float,
    delimiter: str | None,
    decimal: str | None,
) -> None:
    """Write a model with fewer rules and sets, and say what it costs on DATA (or on rows drawn from MODEL)."""
    from dsfr.cli.console import working
    from dsfr.model.model import load
    from dsfr.storage.atomic import check_writable

    for source in (model, *([data] if data else [])):
        refuse_same_file(source, output)
    check_writable(output)
    loaded = load(model)
    X = y = None
    if data is not None:
        X, y = _matrix_of(data, loaded, delimiter, decimal)
    with working("simplifying"):
        result = loaded.simplify(X, y, similarity=similarity, min_strength=min_strength)
    result.model.save(output)
    click.echo(f"{result}\nmodel         {output}")


def _write_edits(model: Any, path: str) -> None:
    from dsfr.io.edits_file import write_edits
    from dsfr.model.student import prescriptions

    if not model.is_student:
        raise BadInputError("--as-file is for short rules (fit --method rules): this model has none")
    write_edits(prescriptions(model), path)


def _introduction(model: Any, explained: Any, all_models: bool) -> str:
    from dsfr.core.explain.words import one_line

    training, n_rules = model.training, len(explained)
    several = f"\n\n{_about_models(training['models'], all_models)}" if "models" in training else ""
    parts = ["the sum of the effects"] if explained.effects is not None else []
    if n_rules:
        parts.append("the average of the rules' lines, weighted by how well each rule's conditions fit")
    rules = f" A prediction is {', plus '.join(parts)}."
    named = f"{n_rules} rules" if n_rules else "Effects"
    return (
        f"{named} for {one_line(model.target_name)}, from {training.get('n_samples', '?')} rows "
        f"({training.get('n_labeled', '?')} labelled) of {training.get('n_agents', '?')} agent(s).{rules}"
        f"{several}"
    )


def _about_models(models: list[dict[str, float]], all_models: bool) -> str:
    models = [model for model in models if model["share"] > 0]
    ruled = [model for model in models if model["n_rules"] > 0]
    kinds = [
        f"{len(ruled)} rule base{'s' if len(ruled) > 1 else ''}",
        f"{len(models) - len(ruled)} sum{'s' if len(models) - len(ruled) > 1 else ''} of effects",
    ]
    named = kinds[: 1 if len(ruled) == len(models) else 2][0 if ruled else 1 :]
    average = f"The model is the average of {' and '.join(named)}"
    if not ruled:
        return f"{average}. {_agreement(models)}"
    strongest = max(ruled, key=lambda model: model["share"])
    shown = "Shown are the rules of all, the strongest first" if all_models else "Shown are the rules of the strongest"
    return (
        f"{average}. {shown}, with a share of {strongest['share']:.0%}; {_explained(strongest)}. {_agreement(models)}"
    )


def _explained(model: dict[str, float]) -> str:
    """How well one member stands for the average; an agreement below 0 is no share of anything."""
    part = model["agreement"]
    if part is None:  # its rules were simplified after it was measured
        return "how well it stands for the average was not measured after simplifying"
    if part <= 0.0:
        return "alone it predicts the average worse than a constant, so read the rules of all (--all-models)"
    return f"it explains {part:.1%} of how the average varies"


def _agreement(models: list[dict[str, float]]) -> str:
    parts = [model["agreement"] for model in models]
    known = [part for part in parts if part is not None and part > 0.0]
    if len(known) < len(parts):
        return "Rules of single members are parts of the average and should not be read alone."
    return f"Each explains at least {min(known):.1%} of how the average varies over the training rows."


def _matrix_of(data: str, model: Any, delimiter: str | None, decimal: str | None) -> tuple[Any, Any]:
    """Features and, if the table has it, the target of all rows."""
    from dsfr.io.columns import Origin, matrix, numbers
    from dsfr.io.tables import read_table

    delimiter, decimal = guessed_dialect(data, delimiter, decimal)
    table, origin = read_table(data, delimiter=delimiter), Origin(decimal=decimal)
    known = model.target_name in table.column_names
    y = numbers(table, model.target_name, origin) if known else None
    return matrix(table, model.columns, origin), y


def _row_of(argument: str, model: Any, delimiter: str | None, decimal: str | None) -> Any:
    """The row that FILE:N names."""
    path, colon, number = argument.rpartition(":")
    if not colon or not number.isascii() or not number.isdigit():
        raise BadInputError(f"--row {argument} must be a table and the number of a row, such as houses.csv:17")
    if not path or not Path(path).is_file():
        raise BadInputError(f"--row {argument}: there is no file {path!r}")
    X, _ = _matrix_of(path, model, delimiter, decimal)
    if not 1 <= int(number) <= len(X):
        raise BadInputError(f"--row {argument}: {path} has rows 1 to {len(X)}")
    return X[int(number) - 1]


def _parts(explained: Any) -> list[dict[str, Any]]:
    """Start, firing, every feature, every pair and the prediction, one record each."""
    parts = [
        ("mean output", explained.start),
        ("rules that fired", explained.firing),
        *explained.contributions.items(),
        *((" and ".join(names), value) for names, value in explained.together.items()),
        ("prediction", explained.prediction),
    ]
    return [{"part": name, "value": value} for name, value in parts]


def _print(text: str, records: list[dict[str, Any]], form: str) -> None:
    import csv
    import io
    import json

    if form == "csv":
        out = io.StringIO()
        names = dict.fromkeys(name for record in records for name in record)
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        text = out.getvalue().rstrip("\n")
    elif form == "json":
        text = json.dumps(records, indent=2, ensure_ascii=False)
    click.echo(text)
