"""The command that uses a model: predict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from dsfr.cli.group import dialect_options, examples, guessed_dialect, main, refuse_same_file
from dsfr.cli.noise import input_noise, noise_option


@main.command(
    short_help="Add predictions to a table.",
    epilog=examples(
        "dsfr predict houses.dsfr new.csv -o predicted.csv", "dsfr predict houses.dsfr new.csv --interval 0.9 | head"
    ),
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", type=click.Path(exists=True))
@click.option(
    "-o", "--output", metavar="FILE", help="CSV, CSV.gz, Parquet or .npy file.  [default: CSV to the terminal]"
)
@click.option("--column", default="prediction", show_default=True, help="Name of the column to add.")
@click.option(
    "--interval",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="COVERAGE",
    help="Add three columns: the ends of the jackknife interval of this nominal coverage, and whether the row is in "
    "the domain of the training rows (models of fit --method rules and auto).",
)
@noise_option
@dialect_options
def predict(
    model: str,
    data: str,
    output: str | None,
    column: str,
    interval: float | None,
    input_std: tuple[str, ...],
    delimiter: str | None,
    decimal: str | None,
) -> None:
    """Add a column of predictions of MODEL to the rows of DATA, a file or a folder of files.

    Empty cells are missing values: predictions average over what they may be, given the others.
    """
    from dsfr.cli.console import watch_rows
    from dsfr.io import scan
    from dsfr.io.formats import output_format
    from dsfr.io.formats.csv import to_csv
    from dsfr.io.tables import as_written, predicted_tables, with_decimal_mark, write_tables
    from dsfr.model.model import load
    from dsfr.storage.atomic import check_writable

    if output is not None:
        output_format(Path(output))
        refuse_same_file(data, output)
        refuse_same_file(model, output)
        check_writable(output)
    loaded = load(model)
    noise = input_noise(input_std, loaded.feature_names)
    if interval is not None:
        loaded.half_width(interval)
    delimiter, decimal = guessed_dialect(data, delimiter, decimal)
    with watch_rows("predicting") as on_rows:
        rows = scan(data, delimiter=delimiter, decimal=decimal)
        tables = predicted_tables(replace(rows, on_rows=on_rows), loaded, column, interval, noise)
        if output is None:
            for number, table in enumerate(with_decimal_mark(tables, decimal)):
                click.echo(to_csv(table, delimiter=delimiter, header=number == 0), nl=False)
            return
        n_rows = write_tables(as_written(tables, rows, output), output, delimiter=delimiter)
    click.echo(f"{n_rows} predictions in {output}", err=True)
