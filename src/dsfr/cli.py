"""The command line. Thin: it reads, calls, writes and says what happened; each command imports what it needs."""

from __future__ import annotations

import io
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dsfr import __version__

METHOD_NAMES = ("sfr-icr", "sfr-g", "s-sfr", "fr", "lapwnn")


class BadInputError(click.ClickException):
    """Something the user can correct."""

    exit_code = 2


class FriendlyGroup(click.Group):
    """A group whose commands answer bad input with one message and exit code 2, never with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, turning errors of the input into messages."""
        _make_streams_forgiving()
        # As Ctrl-C does: leave by way of the cleaning up.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            with _plain_warnings():
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError) as error:
            raise BadInputError(str(error)) from None
        except MemoryError:
            raise BadInputError("out of memory: use fewer rows or columns") from None


def _one_letter(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    letter = "\t" if value in ("\\t", "tab") else value
    if len(letter) != 1 or letter in '\r\n"':
        raise click.BadParameter(f"{value!r} must be one character, or \\t for a tabulator.")
    return letter


_delimiter_option = click.option(
    "--delimiter", default=",", show_default=True, callback=_one_letter, help="Separator of a CSV file; \\t is a tab."
)


def _examples(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@click.group(cls=FriendlyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="dsfr")
def main() -> None:
    r"""Readable fuzzy-rule regression from few labels and many unlabelled rows, on data spread over owners.

    \b
    Examples:
      dsfr demo
      dsfr fit houses.csv --target price -o houses.dsfr
      dsfr predict houses.dsfr new.csv -o predicted.csv
      dsfr explain houses.dsfr
      dsfr reproduce --quick
    """


@main.command(epilog=_examples("dsfr demo", "dsfr demo --seed 7 -o my-demo.dsfr"))
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of folds, labels and fits."
)
@click.option("-o", "--output", default="demo.dsfr", show_default=True, help="Where the model goes.")
def demo(seed: int, output: str) -> None:
    """Compare the paper's five methods on a bundled table, and explain the resulting model."""
    from dsfr.console import count_steps, show_table
    from dsfr.demo import LABELS_PER_AGENT, N_AGENTS, N_FITS, N_FOLDS, compare, summarize, train_model
    from dsfr.files import check_writable

    check_writable(output)
    with count_steps("fitting five methods", N_FITS) as step:
        fits = compare(seed, step)
    header = ["method", "NRMSE", "seconds", f"NRMSE, {N_AGENTS} agents", "seconds", "rounds", "kB sent"]
    n_labels = N_AGENTS * LABELS_PER_AGENT
    show_table(
        f"Diabetes (442 rows, 10 features): {n_labels} labels, centralised and over {N_AGENTS} agents",
        header,
        summarize(fits),
        caption=f"Test NRMSE, mean ± deviation over {N_FOLDS} folds (1 = predicting the mean); seed {seed}, default "
        "settings, nothing tuned. FR has every label.",
    )
    model = train_model(seed)
    click.echo(f"\nThe rules that {N_AGENTS} agents agreed on (SFR-ICR, {LABELS_PER_AGENT} labels each):\n")
    click.echo("\n\n".join(map(str, model.explain())))
    click.echo(f"\nModel file: {model.save(output).resolve()}")
    click.echo(f"Next: dsfr explain {output}")


@main.command(
    epilog=_examples(
        "dsfr fit houses.csv --target price -o houses.dsfr",
        "dsfr fit houses.parquet --target price --agent-column region --solver exact -o houses.dsfr",
        "dsfr fit airfoil.csv.gz --target sound --agents 5 --labels 50 -o airfoil.dsfr",
    )
)
@click.argument("data", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--target", required=True, metavar="COL", help="Column to predict; rows where it is empty are unlabelled."
)
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the model goes, for example model.dsfr.")
@click.option("--agents", type=click.IntRange(min=1), metavar="N", help="Split the rows at random over N agents.")
@click.option("--agent-column", metavar="COL", help="Column that names the owner of each row.")
@click.option("--labels", type=click.IntRange(min=1), metavar="N", help="Hide all but N labels, for experiments.")
@click.option("--features", multiple=True, metavar="COL,COL", help="Columns to learn from.  [default: all others]")
@click.option("--ignore", multiple=True, metavar="COL", help="A column to leave out; may be given several times.")
@click.option("--method", default="sfr-icr", show_default=True, type=click.Choice(METHOD_NAMES, case_sensitive=False))
@click.option("--rules", default=5, show_default=True, help="Number of rules (hidden nodes for lapwnn: 20 times this).")
@click.option("--consistency", default=0.1, show_default=True, help="Weight of interpolation consistency.")
@click.option("--smoothness", default=1e-4, show_default=True, help="Weight of the graph penalty (sfr-g, lapwnn).")
@click.option("--ridge", default=0.1, show_default=True, help="Weight of the ridge penalty.")
@click.option("--fuzzifier", default=1.1, show_default=True, help="Fuzziness of the clusters, > 1.")
@click.option("--width-scale", default=1.0, show_default=True, help="Factor on the widths of the fuzzy sets.")
@click.option(
    "--pairs", type=click.IntRange(min=1), metavar="N", help="Pairs per agent.  [default: as unlabelled rows]"
)
@click.option("--solver", default="admm", show_default=True, type=click.Choice(["admm", "exact"]))
@click.option("--few-rounds", is_flag=True, help="Train in six rounds, where a round costs seconds.")
@click.option("--tol", default=1e-4, show_default=True, help="Relative accuracy of the agreed weights.")
@click.option("--max-rounds", default=10_000, show_default=True, help="Most rounds of clustering and of solving.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of all randomness.")
@_delimiter_option
def fit(data: str, output: str, **options: Any) -> None:
    """Train a model on DATA (CSV, CSV.gz or Parquet) and write it to FILE."""
    from dsfr.console import watch_rounds
    from dsfr.files import check_writable
    from dsfr.fitting import FitOptions, fit_table
    from dsfr.tables import read_table

    _refuse_same_file(data, output)
    check_writable(output)
    told = FitOptions(**options)
    with watch_rounds() as on_round:
        outcome = fit_table(read_table(data, delimiter=told.delimiter), told, on_round)
    outcome.model.save(output)
    _report_fit(outcome, output)


@main.command(
    epilog=_examples("dsfr predict houses.dsfr new.csv -o predicted.csv", "dsfr predict houses.dsfr new.csv | head")
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", metavar="FILE", help="CSV, CSV.gz or Parquet file.  [default: CSV on standard output]")
@click.option("--column", default="prediction", show_default=True, help="Name of the column to add.")
@_delimiter_option
def predict(model: str, data: str, output: str | None, column: str, delimiter: str) -> None:
    """Add a column of predictions of MODEL to the rows of DATA."""
    from dsfr.files import check_writable
    from dsfr.model import load
    from dsfr.tables import check_output_kind, read_table, to_csv, with_predictions, write_table

    if output is not None:
        check_output_kind(output)
        _refuse_same_file(data, output)
        _refuse_same_file(model, output)
        check_writable(output)
    table = with_predictions(read_table(data, delimiter=delimiter), load(model), column)
    if output is None:
        click.echo(to_csv(table, delimiter=delimiter), nl=False)
        return
    write_table(table, output, delimiter=delimiter)
    click.echo(f"{table.num_rows} predictions in {output}", err=True)


@main.command(epilog=_examples("dsfr explain houses.dsfr"))
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
def explain(model: str) -> None:
    """Print the rules of MODEL as sentences, in the units of the data."""
    from dsfr.model import load

    loaded = load(model)
    rules = loaded.explain()
    training = loaded.training
    click.echo(
        f"{len(rules)} rules for {loaded.target_name}, from {training.get('n_samples', '?')} rows "
        f"({training.get('n_labeled', '?')} labelled) of {training.get('n_agents', '?')} agent(s). A prediction is the "
        "average of the rules' lines, weighted by how well each rule's conditions fit.\n"
    )
    click.echo("\n\n".join(map(str, rules)))


@main.command(epilog=_examples("dsfr datasets", "DSFR_DATA_HOME=~/tables dsfr datasets"))
def datasets() -> None:
    """List the paper's data sets: rows, features, source, and whether they are on this machine."""
    from dsfr.console import show_table
    from dsfr.datasets import CATALOG, locate, make_artificial

    where = {"home": "in DSFR_DATA_HOME", "cache": "in the cache", "download": "no, will be downloaded"}
    rows = [
        [source.name, str(source.n_rows), str(source.n_features), where[locate(source.name).how], source.origin]
        for source in CATALOG.values()
    ]
    n_rows, n_features = make_artificial()[0].shape
    rows.append(["artificial", str(n_rows), str(n_features), "generated", "section V of the paper, seed 0"])
    show_table("Data sets of the paper", ["name", "rows", "features", "here", "source"], rows)


@main.command(
    epilog=_examples(
        "dsfr reproduce --quick",
        "dsfr reproduce --jobs 8",
        "dsfr reproduce experiments/grid.toml --output mine",
        "dsfr reproduce --render --output reproduction --report pages",
    )
)
@click.argument("specs", required=False, type=click.Path(exists=True))
@click.option("--quick", is_flag=True, help="Two repetitions and thinner curves: a sixth of the work or less.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: one per core]")
@click.option("-o", "--output", metavar="DIR", help="Where results go.  [default: reproduction, or reproduction-quick]")
@click.option("--report", metavar="DIR", help="Where reproduction.md, .html and figures go.  [default: as --output]")
@click.option("--render", is_flag=True, help="Only render what is stored; compute nothing.")
@click.option("--force", is_flag=True, help="Replace results of another version or another spec.")
def reproduce(
    specs: str | None, quick: bool, jobs: int | None, output: str | None, report: str | None, render: bool, force: bool
) -> None:
    """Run the paper's experiments (SPECS: a TOML file or a folder of them) and write tables, figures and pages.

    Results are stored as they are computed: a run that was stopped goes on where it stopped.
    """
    import os

    from dsfr.console import duration, watch_experiments
    from dsfr.experiments.run import run_experiments
    from dsfr.experiments.spec import find_specs, read_specs
    from dsfr.reproduction.report import REQUIRED, require_figures, write_report

    folder = output or ("reproduction-quick" if quick else "reproduction")
    require_figures()
    chosen = read_specs(specs or find_specs(), quick=quick)
    start = time.perf_counter()
    if not render:
        with watch_experiments() as watch:
            run_experiments(chosen, folder, jobs=jobs or os.cpu_count() or 1, force=force, watch=watch)
        click.echo(f"Results in {folder}, after {duration(time.perf_counter() - start)}.")
    if not render and not {spec.name for spec in chosen} >= set(REQUIRED):
        click.echo("The report needs all experiments; this was a part of them.")
        return
    for path in write_report(folder, report or folder):
        click.echo(path)


def _report_fit(outcome: Any, output: str) -> None:
    from dsfr.console import show_ledger, show_table

    training = outcome.model.training
    rows = [
        ["model", f"{output} ({Path(output).stat().st_size / 1e3:.1f} kB)"],
        ["rows", f"{training['n_samples']} ({training['n_labeled']} labelled)"],
        ["agents", str(training["n_agents"])],
        ["rounds", f"{training['rounds']} ({training['bytes'] / 1e3:.1f} kB sent)"],
        ["ended", str(training["termination"])],
        *([label, f"{value:.4f}"] for label, value in outcome.errors.items()),
    ]
    show_table("Trained", ["", ""], rows)
    if training["n_agents"] > 1:
        show_ledger(outcome.ledger)


def _refuse_same_file(source: str, output: str) -> None:
    if Path(output).exists() and Path(output).samefile(source):
        raise BadInputError(f"the output {output} is an input file: write elsewhere")


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as lines on standard error, once all else has been said, without the place in the code."""
    said: list[str] = []

    def show(message: Warning | str, *_: object) -> None:
        said.append(f"Warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        finally:
            for line in said:
                click.echo(line, err=True)


def _make_streams_forgiving() -> None:
    """Letters that a terminal's encoding lacks are shown as escapes, not as an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
