"""The command that makes a model: fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dsfr.cli.distributed import engine_options, training_processes
from dsfr.cli.group import (
    SOLVERS,
    TOPOLOGY_HELP,
    BadInputError,
    GroupedCommand,
    dialect_options,
    examples,
    guessed_dialect,
    main,
    refuse_same_file,
)

SLOW_SECONDS = 1.0
"""Trainings that take longer show their time by stage."""
METHOD_NAMES = ("rules", "auto", "sfr-icr", "sfr-g", "s-sfr", "fr", "lapwnn")
OPTION_GROUPS = {
    "Data": ("target", "features", "ignore", "labels", "category", "ranges", "delimiter", "decimal"),
    "Method": ("method", "paper", "rules", "weight", "pairs", "ridge", "tune", "fuzzifier", "width_scale", "seed"),
    "Agents": (
        "agents",
        "agent_column",
        "solver",
        "tol",
        "max_rounds",
        "topology",
        "engine",
        "scheduler",
        "checkpoint",
        "resume",
        "policy",
        "masks",
    ),
    "Output": ("output", "tensorboard"),
}
"""Options of ``dsfr fit`` as its help shows them."""


@main.command(
    cls=GroupedCommand,
    short_help="Train a model on a table.",
    option_groups=OPTION_GROUPS,
    epilog=examples(
        "dsfr fit houses.csv --target price -o houses.dsfr",
        "dsfr fit houses.csv --target price --method auto -o houses.dsfr",
        "dsfr fit houses.csv --target price --rules edited.yaml -o houses.dsfr",
        "dsfr fit houses.parquet --target price --agent-column region -o houses.dsfr",
        "dsfr fit readings/ --target load --ignore time -o load.dsfr",
        "dsfr fit airfoil.csv.gz --target sound --agents 5 --labels 50 -o airfoil.dsfr",
        "dsfr fit airfoil.csv.gz --target sound --agents 5 --labels 50 --paper -o airfoil.dsfr",
        "dsfr fit sensors.csv --target load --method sfr-icr --agents 20 --topology ring -o load.dsfr",
        "mpiexec -n 5 dsfr fit --engine mpi 'site-{rank}.parquet' --target y -o model.dsfr",
        "dsfr fit --engine dask --scheduler tcp://head:8786 'data/*.parquet' --target y -o model.dsfr",
    ),
)
@click.argument("data")
@click.option(
    "--target", required=True, metavar="COL", help="Column to predict; rows where it is empty are unlabelled."
)
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the model goes, for example model.dsfr.")
@click.option("--agents", type=click.IntRange(min=1), metavar="N", help="Split the rows at random over N agents.")
@click.option("--agent-column", metavar="COL", help="Column that names the owner of each row.")
@click.option("--labels", type=click.IntRange(min=1), metavar="N", help="Hide all but N labels, for experiments.")
@click.option(
    "--features",
    multiple=True,
    metavar="COL,COL",
    help="Columns to learn from; may be given several times.  [default: all others]",
)
@click.option("--ignore", multiple=True, metavar="COL", help="A column to leave out; may be given several times.")
@click.option(
    "--category",
    multiple=True,
    metavar="COL[=LEVEL,LEVEL]",
    help="A column of categories, perhaps with its levels; may be given several times.  [default: columns of text]",
)
@click.option(
    "--method",
    show_default="rules; with --paper sfr-icr",
    type=click.Choice(METHOD_NAMES, case_sensitive=False),
    help="rules makes a few short rules that are the model: those of auto, distilled. auto averages many rules and "
    "chooses everything from the data. The others are the paper's. Options that are given win.",
)
@click.option(
    "--paper",
    is_flag=True,
    help="The method as the paper prints it: plain ADMM with its stopping tests, random start, raw targets. Options "
    "that are given win.",
)
@click.option(
    "--rules",
    metavar="N|FILE",
    help="Number of rules: for rules the largest, for auto the smallest (hidden nodes for lapwnn: 20 times this); or, "
    "for rules, a file of prescriptions as dsfr explain --as-file writes it.  [default: 5]",
)
@click.option(
    "--weight",
    type=float,
    metavar="X",
    help="Weight of the penalty on unlabelled rows.  [default: 0.1 for sfr-icr, 1e-4 for sfr-g and lapwnn]",
)
@click.option(
    "--pairs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Pairs per agent (auto, sfr-icr).  [default: as unlabelled rows]",
)
@click.option("--ridge", type=float, metavar="X", help="Weight of the ridge penalty.  [default: 0.1]")
@click.option(
    "--tune",
    type=click.Choice(["evidence", "loo", "none"]),
    help="Choose ridge and weight from the labels: by marginal likelihood, or by leave-one-out.  [default: evidence "
    "for auto, else none]",
)
@click.option(
    "--fuzzifier", type=float, metavar="X", help="Fuzziness of the clusters, > 1 (not lapwnn).  [default: 1.1]"
)
@click.option(
    "--width-scale",
    type=float,
    metavar="X",
    help="Factor on the widths of the fuzzy sets (not lapwnn).  [default: 1.5 for auto, else 1]",
)
@click.option(
    "--solver",
    type=click.Choice(SOLVERS),
    help="How agents agree.  [default: sums where ridge and weight are tuned, else conjugate]",
)
@click.option(
    "--tol", type=float, metavar="X", help="Accuracy of clusters and weights.  [default: 1e-2 for auto, else 1e-4]"
)
@click.option("--max-rounds", type=int, metavar="N", help="Most rounds of clustering and of solving.  [default: 10000]")
@click.option("--ranges", metavar="FILE", help="Declared ranges of all columns (TOML): nobody is asked for extremes.")
@click.option("--topology", metavar="GRAPH", help=TOPOLOGY_HELP)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of all randomness.")
@click.option("--tensorboard", metavar="DIR", help="Write every round there for TensorBoard.")
@dialect_options
@engine_options
def fit(data: str, output: str, tensorboard: str | None, **options: Any) -> None:
    """Train a model on DATA (CSV, CSV.gz, Parquet, .npy, or a folder of such files) and write it to FILE.

    Folders and large files are read in batches: they need not fit into memory. With --engine, every file is an agent:
    DATA is a folder, a pattern such as 'data/*.parquet', or with MPI a name with {rank} in it.
    """
    from contextlib import ExitStack

    from dsfr.cli.console import watch_rounds
    from dsfr.estimators.monitors import TensorBoard, together
    from dsfr.pipeline.engines import EngineOptions
    from dsfr.pipeline.fit import fit_model
    from dsfr.pipeline.options import FitOptions, make_estimator
    from dsfr.storage.atomic import check_writable

    engine = EngineOptions(
        **{name: options.pop(name) for name in ("engine", "scheduler", "checkpoint", "resume", "policy", "masks")}
    )
    options |= _rules_or_edits(options.pop("rules"))
    options["method"] = options["method"] or ("sfr-icr" if options["paper"] else "rules")
    fit_options = FitOptions(**options)
    make_estimator(fit_options, None)  # refuses incompatible options before anything is read
    if engine.engine is None:
        _check_table(data, output)
        delimiter, decimal = guessed_dialect(data, fit_options.delimiter, fit_options.decimal)
        fit_options = replace(fit_options, delimiter=delimiter, decimal=decimal)
    elif tensorboard is not None:
        raise BadInputError("--tensorboard does not go with --engine: leave out one or the other")
    with training_processes(engine.engine) as processes, ExitStack() as stack:
        is_first = processes.rank == 0
        processes.run_on_all(lambda: check_writable(output) if is_first else None)
        watch = stack.enter_context(watch_rounds()) if is_first else None
        boards = [] if tensorboard is None else [stack.enter_context(TensorBoard(tensorboard))]
        on_round = together(watch.on_round, *boards) if watch else None
        outcome = fit_model(data, fit_options, engine, processes, on_round, watch.on_rows if watch else None)
        processes.run_on_all(lambda: outcome.model.save(output) if is_first else None)
    if is_first:
        _report_fit(outcome, output, tuned=fit_options.tune is not None)


def _rules_or_edits(given: str | None) -> dict[str, Any]:
    """The number of rules, or the prescriptions of a file."""
    from dsfr.io.edits_file import read_edits

    if given is None:
        return {}
    number = given.removeprefix("-")
    if number.isascii() and number.isdigit():
        return {"rules": int(given)}
    if not Path(given).is_file():
        raise BadInputError(f"--rules {given} must be a number of rules, or a file of prescriptions")
    return {"edits": read_edits(given)}


def _check_table(data: str, output: str) -> None:
    """Check that the table exists and is not the output."""
    if not Path(data).exists():
        raise BadInputError(f"Invalid value for 'DATA': Path {data!r} does not exist. Patterns need --engine.")
    refuse_same_file(data, output)


def _report_fit(outcome: Any, output: str, *, tuned: bool) -> None:
    """Print what was trained, its errors and the rules; what was ``tuned`` where that was asked for."""
    from dsfr.cli.console import show_ledger, show_table
    from dsfr.pipeline.left_out import NO_SIGNAL, gain_of_unlabeled

    training = outcome.model.training
    rows = [
        ["model", f"{output} ({Path(output).stat().st_size / 1e3:.1f} kB)"],
        ["rows", f"{training['n_samples']} ({training['n_labeled']} labelled)"],
        ["agents", str(training["n_agents"])],
        ["rounds", f"{training['rounds']} ({training['bytes'] / 1e3:.1f} kB sent)"],
        ["ended", str(training["termination"])],
        *([f"tuned {name}", f"{value:.3g}"] for name, value in training.get("tuned", {}).items() if tuned),
        *_left_out_rows(outcome),
        *([label, f"{value:.4f}"] for label, value in outcome.errors.items()),
    ]
    show_table("Trained", ["", ""], rows)
    found, spread = outcome.left_out, outcome.spread
    if found is not None and spread is not None and not found.is_better_than(spread):
        click.echo(NO_SIGNAL)
    elif outcome.alone is not None and found.error > 0.0:
        click.echo(gain_of_unlabeled(found, outcome.alone))
    if outcome.model.is_student:
        click.echo(f"\n{outcome.model.explain()}")
    if "models" in training:
        show_table(
            "Models in the average", ["rules", "share", "agreement", "width", "pairs"], _models(training["models"])
        )
    if outcome.report.seconds > SLOW_SECONDS and len(outcome.report.stages) > 1:
        show_table(
            f"Time: {outcome.report.seconds:.1f} s", ["stage", "seconds", "share", "rows/s"], outcome.report.table()
        )
    if training["n_agents"] > 1:
        show_ledger(outcome.ledger)


def _left_out_rows(outcome: Any) -> list[list[str]]:
    """Leave-one-out error with its standard error, as a part of the labels' deviation where that is known."""
    from dsfr.core.explain.words import readable

    found = outcome.left_out
    if found is None:
        return []
    if outcome.spread is None:
        return [["RMSE, leave-one-out", f"{readable(found.error)} ± {readable(found.standard_error)}"]]
    error, standard_error = found.error / outcome.spread, found.standard_error / outcome.spread
    return [["NRMSE, leave-one-out", f"{error:.4f} ± {standard_error:.4f}"]]


def _models(models: list[dict[str, float]]) -> list[list[str]]:
    return [
        [
            f"{model['n_rules']:g}" if model["n_rules"] else "effects",
            f"{model['share']:.0%}",
            f"{model['agreement']:.3f}",
            f"{model['width_scale']:g}",
            "near" if model["near_pairs"] else "random",
        ]
        for model in models
    ]
