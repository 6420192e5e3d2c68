"""Commands that ask all owners of a federation: check their tables, fit, see who is connected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dsfr.cli.federation import FILE, KIT, federation
from dsfr.cli.group import BadInputError

PRIVATE_METHOD = "s-sfr"
_ROSTER_HELP = "Names and fingerprints of all owners (TOML)."


def _plan_options(command: Any) -> Any:
    for option in reversed(
        (
            click.option("--target", required=True, help="Column of the target."),
            click.option("--features", required=True, help="Columns of the features, with commas between them."),
            click.option("--category", multiple=True, metavar="COL=LEVEL,LEVEL", help="A feature that is a category."),
            click.option("--ranges", required=True, type=FILE, help="Declared ranges and units of all columns (TOML)."),
            click.option("--round-seconds", default=60.0, show_default=True, help="Time for an owner to answer."),
            click.option("--timeout", default=3600.0, show_default=True, help="Seconds to wait for the end."),
        )
    ):
        command = option(command)
    return command


@federation.command()
@click.argument("data", type=FILE, required=False)
@click.option("--kit", type=click.Path(file_okay=False, path_type=Path), help="Kit of a lead, to ask all owners.")
@click.option("--roster", type=FILE, help=_ROSTER_HELP)
@_plan_options
@click.option("--policy", type=FILE, help="Rules that are tighter than the defaults (TOML), for the own table.")
@click.option("--units", type=FILE, help="Units of the own columns (TOML), for the own table.")
def check(data: Path | None, kit: Path | None, roster: Path | None, **options: Any) -> None:
    """Check the own table before a fit, or (with a lead's kit) those of all owners: yes or no, and no values."""
    from dsfr.federation.check import Expected

    limits: dict[str, Any] = {"seconds": options.pop("timeout"), "round_seconds": options.pop("round_seconds")}
    own = {name: options.pop(name) for name in ("policy", "units")}
    plan = _plan(options.pop("features"), options.pop("ranges"), **options)
    expected = Expected.of(plan)
    if data is not None and kit is None:
        _show_own(data, expected, **own)
    elif data is None and kit is not None and roster is not None:
        _show_all(kit, roster, plan, limits)
    else:
        raise BadInputError("check the own table (DATA), or those of all owners (--kit of a lead, and --roster)")


def _show_own(data: Path, expected: Any, policy: Path | None, units: Path | None) -> None:
    from dsfr.disclosure import Policy
    from dsfr.federation.check import NO, YES, check_table, mismatches
    from dsfr.pipeline.ranges import read_units

    rules = Policy() if policy is None else Policy.read(policy)
    answers = check_table(data, expected, rules, None if units is None else read_units(units))
    for question, answer in zip(expected.questions(), answers, strict=True):
        click.echo(f"{({YES: 'yes', NO: 'NO' if question.is_needed else 'no'}).get(answer, '?'):<4}{question.text}")
    if mismatches(expected.questions(), answers):
        raise BadInputError("the table does not fit: see the lines with NO")


def _show_all(kit: Path, roster: Path, plan: dict[str, Any], limits: dict[str, Any]) -> None:
    """One paragraph for every owner: what does not fit, and what else differs."""
    from dsfr.cli.console import spinner
    from dsfr.federation.check import Expected
    from dsfr.federation.roster import Roster
    from dsfr.federation.session import FederatedFitError, Job, submit_check

    asked = Expected.of(plan).questions()
    with spinner("checking") as show:
        try:
            found = submit_check(kit, Job(plan=plan, roster=Roster.read(roster), **limits), show)
        except FederatedFitError as error:
            raise BadInputError(str(error)) from None
    fits = [_show_owner(name, asked, answers) for name, answers in found.items()]
    if not all(fits):
        raise BadInputError(f"{fits.count(False)} of {len(fits)} tables do not fit: see the lines with NO")


def _show_owner(name: str, asked: Sequence[Any], answers: list[int] | str) -> bool:
    """Print what is remarkable about the table of one owner; whether it fits."""
    from dsfr.federation.check import NO, UNKNOWN, mismatches

    if isinstance(answers, str) or len(answers) != len(asked) or not set(answers) <= {0, 1, 2}:
        reason = answers if isinstance(answers, str) else "it answered something else than yes and no"
        click.echo(f"{name}: NO  {reason}")
        return False
    wrong = mismatches(asked, answers)
    click.echo(f"{name}: {'does not fit' if wrong else 'fits'}")
    for text in wrong:
        click.echo(f"  NO  {text}")
    for question, answer in zip(asked, answers, strict=True):
        if answer == UNKNOWN or (answer == NO and not question.is_needed):
            click.echo(f"  {'no' if answer == NO else '?':<3} {question.text}")
    return not wrong


@federation.command()
@KIT
@click.option("--roster", required=True, type=FILE, help=_ROSTER_HELP)
@_plan_options
@click.option("--method", default="rules", show_default=True, help="As in `dsfr fit`.")
@click.option("--rules", type=click.IntRange(min=1), help="Number of rules.")
@click.option("--tune", help="As in `dsfr fit`.")
@click.option(
    "--private", is_flag=True, help="Two noisy sums (s-sfr alone): for owners whose policies have an epsilon."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of all randomness.")
@click.option("-o", "--output", required=True, type=FILE, help="Where the model goes.")
def fit(kit: Path, roster: Path, output: Path, features: str, ranges: Path, **options: Any) -> None:
    """Train over all owners; a fit with the same options that was interrupted is resumed."""
    from dsfr.cli.console import spinner
    from dsfr.federation.roster import Roster
    from dsfr.federation.session import FederatedFitError, Job, submit_fit
    from dsfr.storage.atomic import check_writable

    check_writable(output)
    limits: dict[str, Any] = {"seconds": options.pop("timeout"), "round_seconds": options.pop("round_seconds")}
    job = Job(plan=_plan(features, ranges, **options), roster=Roster.read(roster), **limits)
    with spinner("fitting") as show:
        try:
            submit_fit(kit, job, output, show)
        except FederatedFitError as error:
            raise BadInputError(str(error)) from None
    click.echo(f"model: {output}")


def _plan(features: str, ranges: Path, **options: Any) -> dict[str, Any]:
    from dsfr.federation.fit import declared_columns, fit_plan
    from dsfr.pipeline.options import AUTO, RULES, FitOptions
    from dsfr.pipeline.ranges import read_ranges, read_units

    names = tuple(name.strip() for name in features.split(",") if name.strip())
    solver = None if options.get("method", RULES) in (AUTO, RULES) else "sums"
    if options.pop("private", False):
        if options["method"] != PRIVATE_METHOD:
            raise BadInputError(
                f"--private goes with --method {PRIVATE_METHOD} alone: others ask for more than two sums"
            )
        solver = "private-sums"
    asked = FitOptions(solver=solver, **options)
    declared = read_ranges(ranges, declared_columns(asked, names).schema, asked.target)
    return fit_plan(asked, names, declared, read_units(ranges))


@federation.command()
@KIT
def status(kit: Path) -> None:
    """Owners that are connected; with the kit of a lead."""
    from dsfr.federation.session import connected_owners

    for name in connected_owners(kit):
        click.echo(name)
