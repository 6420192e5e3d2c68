"""Commands for researchers: datasets, reproduce."""

from __future__ import annotations

import time

import click

from dsfr.cli.group import examples, main


@main.command(
    short_help="List the paper's data sets.", epilog=examples("dsfr datasets", "DSFR_DATA_HOME=~/tables dsfr datasets")
)
def datasets() -> None:
    """List the paper's data sets: rows, features, source, and whether they are on this machine."""
    from dsfr.cli.console import show_table
    from dsfr.paper.datasets import CATALOG, locate, make_artificial

    where = {"home": "in DSFR_DATA_HOME", "cache": "in the cache", "download": "no, will be downloaded"}
    rows = [
        [source.name, str(source.n_rows), str(source.n_features), where[locate(source.name).kind], source.origin]
        for source in CATALOG.values()
    ]
    n_rows, n_features = make_artificial()[0].shape
    rows.append(["artificial", str(n_rows), str(n_features), "generated", "section V of the paper, seed 0"])
    show_table("Data sets of the paper", ["name", "rows", "features", "here", "source"], rows)


@main.command(
    short_help="Run the paper's experiments.",
    epilog=examples(
        "dsfr reproduce --quick",
        "dsfr reproduce --jobs 8",
        "dsfr reproduce experiments/grid.toml --output mine",
        "dsfr reproduce --render --output reproduction --report pages",
    ),
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

    from dsfr.cli.console import duration, watch_experiments
    from dsfr.paper.experiments.run import run_experiments
    from dsfr.paper.experiments.spec import find_specs, read_specs
    from dsfr.paper.reproduction.report import REQUIRED, require_figures, write_report

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
