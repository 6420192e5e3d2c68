"""The command demo: the recommended model on a table that comes with scikit-learn, beside other methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dsfr.cli.group import examples, main


@main.command(
    short_help="Train short rules, compare methods, write a report.",
    epilog=examples("dsfr demo", "dsfr demo --seed 7 -o my-demo.dsfr"),
)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of folds, labels and fits."
)
@click.option(
    "-o",
    "--output",
    default="demo.dsfr",
    show_default=True,
    help="Where the model goes; its table (.csv) and its report (.html) go beside it.",
)
def demo(seed: int, output: str) -> None:
    """Train short rules on a bundled table of five owners, compare them with other methods, and write a report."""
    from dsfr.cli.console import count_steps, working
    from dsfr.io.tables import write_tables
    from dsfr.paper.demo import as_table, compare, n_fits, train_model
    from dsfr.report import write_report
    from dsfr.storage.atomic import check_writable

    files = [Path(output).with_suffix(suffix) for suffix in (Path(output).suffix or ".dsfr", ".csv", ".html")]
    for path in files:
        check_writable(path)
    with working("training over five owners"):
        model, data = train_model(seed)
    _show_model(model)
    with count_steps("comparing methods", n_fits()) as step:
        _show_comparison(compare(seed, step), seed)
    _show_traffic(model)
    path, table, page = files
    model.save(path)
    write_tables([as_table(data)], table)
    write_report(model, page, data.X, data.y)
    click.echo(f"Report page: {page.resolve()} (open it in a browser; it needs no network)\n\nNext:")
    following = {
        f"dsfr explain {path} --row {table}:1": "one prediction, part by part",
        f"dsfr predict {path} {table} --interval 0.9": "a prediction and its interval for every row",
        "dsfr fit YOURS.csv --target COLUMN -o yours.dsfr": "an empty cell in COLUMN is an unlabelled row",
    }
    width = max(map(len, following))
    for command, meaning in following.items():
        click.echo(f"  {command:<{width}}  # {meaning}")


def _show_model(model: Any) -> None:
    from dsfr.paper.demo import FEATURES, LABELS_PER_AGENT, N_AGENTS, TARGET

    n_labels, n_rows = N_AGENTS * LABELS_PER_AGENT, model.training["n_samples"]
    click.echo(
        f"{n_rows} wines (a table that comes with scikit-learn) of {N_AGENTS} owners, who keep their rows.\n"
        f"{TARGET} was measured on {n_labels} of them, {LABELS_PER_AGENT} at each owner; {', '.join(FEATURES)} on "
        "all.\n"
        "The model that the owners agreed on is this text:\n"
    )
    click.echo(model.explain())


def _show_comparison(fits: list[Any], seed: int) -> None:
    from dsfr.cli.console import show_table
    from dsfr.paper.demo import COVERAGE, LABELS_PER_AGENT, N_AGENTS, N_FOLDS, advice, summarize

    n_labels = N_AGENTS * LABELS_PER_AGENT
    click.echo()
    show_table(
        f"Error on wines that training did not see ({n_labels} labels)",
        ["method", "NRMSE", f"{COVERAGE:.0%} intervals hold", "rows stay with owners"],
        summarize(fits),
        caption=f"Mean over {N_FOLDS} folds ± standard error, the same rows and labels for all; 1 = predicting the "
        f"mean; seed {seed}, default settings. FR has every label. The table and its columns were chosen among several "
        "as an illustration; docs/benchmarks.md compares over many tables. Where the target is nearly linear in the "
        "features, as in scikit-learn's diabetes table, ridge regression is as good or better.",
    )
    click.echo(f"{advice(fits)}\n")


def _show_traffic(model: Any) -> None:
    from dsfr.paper.demo import kilobytes_sent

    sent = dict(kilobytes_sent(model))
    each = ", ".join(f"{name} {value:,.0f} kB" for name, value in sent.items())
    click.echo(
        f"What left each owner: {each}, in {model.training['rounds']} rounds.\n"
        "These are sums over its rows and vectors of the model's size, which do not grow with the number of rows. What "
        "they reveal: docs/privacy.md.\n"
    )
