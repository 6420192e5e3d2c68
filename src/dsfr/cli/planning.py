"""The command ``dsfr plan``."""

from __future__ import annotations

from typing import Any

import click

from dsfr.cli.group import SOLVERS, TOPOLOGY_HELP, BadInputError, examples, main


class RoundsOption(click.Option):
    """A number of rounds whose help states the numbers that the solvers declare."""

    def __init__(self, *args: Any, stage: int, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.stage = stage

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help, with the default of every solver."""
        from dsfr.training.solvers import Solver

        record = super().get_help_record(ctx)
        usual = {name: kind.usual_rounds for name, kind in Solver.choices.items()}  # type: ignore[attr-defined]
        defaults = ", ".join(f"{name} {rounds[self.stage]}" for name, rounds in usual.items() if rounds is not None)
        return record and (record[0], f"{record[1]}  [default: {defaults}]")


@main.command(
    short_help="Estimate rounds, bytes and time of a training.",
    epilog=examples(
        "dsfr plan --rows 1000000 --features 8 --agents 20 --latency 50",
        "dsfr plan --rows 1e6 --features 8 --agents 20 --solver sums --topology grid",
        "dsfr plan --rows 1e6 --features 8 --agents 20 --solver decentralized --topology ring",
        "dsfr plan --rows 50000 --features 30 --agents 5 --solver few-rounds --latency 2000 --bandwidth 1",
    ),
)
@click.option("--rows", required=True, type=float, metavar="N", help="Rows of all agents together.")
@click.option("--features", required=True, type=click.IntRange(min=1), metavar="N", help="Number of features.")
@click.option("--agents", required=True, type=click.IntRange(min=1), metavar="N", help="Number of agents.")
@click.option("--rules", default=5, show_default=True, help="Number of rules.")
@click.option("--solver", default="conjugate", show_default=True, type=click.Choice(SOLVERS), help="How agents agree.")
@click.option("--topology", metavar="GRAPH", help=TOPOLOGY_HELP)
@click.option("--latency", default=1.0, show_default=True, help="Milliseconds a message takes on a link.")
@click.option("--bandwidth", default=100.0, show_default=True, help="Megabits a link carries in a second.")
@click.option("--cluster-rounds", cls=RoundsOption, stage=0, type=click.IntRange(min=1), help="Rounds of clustering.")
@click.option("--weight-rounds", cls=RoundsOption, stage=1, type=click.IntRange(min=1), help="Rounds of solving.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of random graphs.")
def plan(rows: float, features: int, agents: int, topology: str | None, seed: int, **options: Any) -> None:
    """Estimate rounds, bytes and time of a training (SFR-ICR) before anything runs."""
    from dsfr.estimators.parameters import training_seed
    from dsfr.pipeline.plan import make_plan, plan_links
    from dsfr.training import Settings

    latency, bandwidth = options["latency"], options["bandwidth"]
    if not (rows >= 1 and latency >= 0 and 0 < bandwidth < float("inf") and rows < 1e15 and latency < float("inf")):
        raise BadInputError("--rows must be 1 or more, --latency 0 or more and --bandwidth more than 0, all finite")
    settings = Settings(n_rules=options["rules"], solver=options["solver"], seed=seed)
    # The graph of `dsfr fit` with this seed, or bytes would be those of another one.
    drawn = training_seed(seed)
    speed = {"latency": latency / 1e3, "bandwidth": bandwidth * 1e6 / 8}
    links = plan_links(agents, topology, **speed, seed=drawn, gossip=settings.solver.gossips)
    rounds = {name: options[name] for name in ("cluster_rounds", "weight_rounds")}
    _show_plan(make_plan(int(rows), features, links, settings, **rounds), assumed=options["solver"] != "few-rounds")


def _show_plan(made: Any, *, assumed: bool) -> None:
    from dsfr.cli.console import show_table

    if made.links.n_agents == 1:
        click.echo(f"One agent sends nothing. Computing takes about {made.computing:.2g} s, timed on this machine.")
        return
    rows = [
        [
            leg.task,
            str(leg.rounds * made.links.rounds(leg)),
            str(leg.rounds * made.links.messages(leg)),
            f"{leg.rounds * made.links.bytes(leg) / 1e3:.1f}",
            f"{leg.rounds * made.links.seconds(leg):.3g}",
        ]
        for leg in made.legs
    ]
    if made.links.building is not None:
        first = made.links.building
        rows.insert(0, [first.name, str(first.rounds or ""), str(first.messages), f"{first.bytes / 1e3:.1f}", ""])
    total = ["all", str(made.rounds), "", f"{made.bytes / 1e3:.1f}", f"{made.travelling:.3g}"]
    certain = "exact for these rounds" if made.exact else "estimated"
    caption = f"{'Rounds of iterations are assumed (see --cluster-rounds). ' * assumed}Kilobytes are {certain}."
    show_table("Plan", ["task", "rounds", "messages", "kB", "seconds on the way"], [*rows, total], caption=caption)
    click.echo(f"Computing takes each agent about {made.computing:.2g} s more, timed on this machine.")
