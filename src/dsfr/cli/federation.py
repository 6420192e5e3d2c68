"""Commands of a federation: provisioning, daemons, checks, fits and audits."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from dsfr.cli.group import BadInputError, main

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)
_KIT = click.option("--kit", required=True, type=_FOLDER, help="Folder of the own kit.")


@main.group()
def federation() -> None:
    """Train together with other organisations, each with its own rows (needs the extra `federation`)."""


@federation.command()
@click.argument("name")
@click.option("--host", required=True, help="Name of the coordinator's machine, as owners reach it.")
@click.option("--port", default=8002, show_default=True, type=click.IntRange(1, 65535), help="Its only open port.")
@click.option("-o", "--output", required=True, type=_FOLDER, help="New folder of the project and its authority.")
def init(name: str, host: str, port: int, output: Path) -> None:
    """Make a project and its certificate authority."""
    from dsfr.federation.kits import init_project

    click.echo(f"fingerprint of the authority (tell it out of band): {init_project(output, name, host, port)}")


@federation.command()
@click.argument("name")
@click.option("--project", required=True, help="Name of the project.")
@click.option("--org", required=True, help="Name of the own organisation.")
@click.option("--kind", default="site", show_default=True, type=click.Choice(["site", "coordinator", "lead"]))
@click.option("--port", default=8002, show_default=True, type=click.IntRange(1, 65535), help="Of a coordinator.")
@click.option("-o", "--output", required=True, type=_FOLDER, help="New folder; the private key stays in it.")
def request(name: str, project: str, org: str, kind: str, port: int, output: Path) -> None:
    """Make a private key and a request for a certificate."""
    from dsfr.federation import kits

    click.echo(f"send this to the project: {kits.request(output, project, name, org, kind, port)}")


@federation.command()
@click.argument("request_file", type=_FILE)
@click.option("--project", required=True, type=_FOLDER, help="Folder of the project.")
@click.option("-o", "--output", required=True, type=_FILE, help="Signed request, to send back.")
def approve(request_file: Path, project: Path, output: Path) -> None:
    """Sign a request; look at who it is from first."""
    from dsfr.federation import kits

    kits.approve(project, request_file, output)
    click.echo(f"signed: {output}")


@federation.command()
@click.argument("signed", type=_FILE)
@click.option("--request", "request_folder", required=True, type=_FOLDER, help="Folder of the own request.")
@click.option("--fingerprint", required=True, help="Of the authority, as told out of band.")
@click.option("-o", "--output", required=True, type=_FOLDER, help="New folder of the kit.")
def join(signed: Path, request_folder: Path, fingerprint: str, output: Path) -> None:
    """Make a kit from a signed request, and print its line of the roster."""
    from dsfr.federation import kits
    from dsfr.federation.roster import fingerprint_of

    kits.join(signed, request_folder, fingerprint, output)
    certificate = output / "startup" / "client.crt"
    if certificate.is_file():
        name = json.loads(next((output / "startup").glob("fed_*.json")).read_text()).get("client", {}).get("fqsn")
        click.echo(f'{name} = "{fingerprint_of(certificate)}"' if name else f"kit of a lead: {output}")


@federation.command()
@_KIT
@click.option("--roster", required=True, type=_FILE, help="Names and fingerprints of all owners (TOML).")
def coordinator(kit: Path, roster: Path) -> None:
    """Run the coordinator, until Ctrl-C."""
    from dsfr.federation.kits import run_daemon
    from dsfr.federation.nvflare_components import ROSTER
    from dsfr.federation.roster import Roster

    Roster.read(roster)
    (kit / "local" / ROSTER).write_bytes(roster.read_bytes())
    raise SystemExit(run_daemon(kit))


@federation.command()
@_KIT
@click.option("--data", required=True, type=_FILE, help="The own table.")
@click.option("--target", required=True, help="Column of the target.")
@click.option("--roster", required=True, type=_FILE, help="Names and fingerprints of all owners (TOML).")
@click.option("--policy", type=_FILE, help="Rules that are tighter than the defaults (TOML).")
@click.option("--standing-consent", is_flag=True, help="Agree to every fit that keeps the policy.")
def agent(kit: Path, data: Path, target: str, roster: Path, policy: Path | None, standing_consent: bool) -> None:
    """Run an owner's site, until Ctrl-C."""
    from dsfr.federation.kits import run_daemon
    from dsfr.federation.owner_site import OwnerSite, SiteConfiguration

    name = json.loads((kit / "startup" / "fed_client.json").read_text())["client"]["fqsn"]
    SiteConfiguration(
        name=name,
        data=str(data.resolve()),
        target=target,
        roster=str(roster.resolve()),
        policy=None if policy is None else str(policy.resolve()),
        standing_consent=standing_consent,
    ).write(kit)
    OwnerSite(kit)
    raise SystemExit(run_daemon(kit))


def _plan_options(command: Any) -> Any:
    for option in reversed(
        (
            click.option("--target", required=True, help="Column of the target."),
            click.option("--features", required=True, help="Columns of the features, with commas between them."),
            click.option("--category", multiple=True, metavar="COL=LEVEL,LEVEL", help="A feature that is a category."),
            click.option("--ranges", required=True, type=_FILE, help="Declared ranges of all columns (TOML)."),
        )
    ):
        command = option(command)
    return command


@federation.command()
@click.argument("data", type=_FILE)
@_plan_options
@click.option("--policy", type=_FILE, help="Rules that are tighter than the defaults (TOML).")
def check(data: Path, target: str, features: str, category: tuple[str, ...], ranges: Path, policy: Path | None) -> None:
    """Check the own table before a fit: yes or no, and nothing leaves."""
    from dsfr.disclosure import Policy
    from dsfr.federation.check import check_table
    from dsfr.federation.fit import declared_columns
    from dsfr.pipeline.fit import read_ranges
    from dsfr.pipeline.options import FitOptions

    columns = declared_columns(FitOptions(target=target, category=category), _names(features))
    rules = Policy() if policy is None else Policy.read(policy)
    answers = check_table(data, columns, read_ranges(ranges, columns.schema, target), rules)
    for question, holds in answers.items():
        click.echo(f"{'yes' if holds else 'NO '}  {question}")
    if not all(answers.values()):
        raise BadInputError("the table does not fit: see the lines with NO")


@federation.command()
@_KIT
@click.option("--roster", required=True, type=_FILE, help="Names and fingerprints of all owners (TOML).")
@_plan_options
@click.option("--method", default="rules", show_default=True, help="As in `dsfr fit`.")
@click.option("--rules", type=click.IntRange(min=1), help="Number of rules.")
@click.option("--tune", help="As in `dsfr fit`.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of all randomness.")
@click.option("--round-seconds", default=60.0, show_default=True, help="Time for an owner to answer.")
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds to wait for the model.")
@click.option("-o", "--output", required=True, type=_FILE, help="Where the model goes.")
def fit(kit: Path, roster: Path, output: Path, features: str, ranges: Path, **options: Any) -> None:
    """Train over all owners; a fit with the same options that was interrupted is resumed."""
    from dsfr.federation.fit import declared_columns, fit_plan
    from dsfr.federation.roster import Roster
    from dsfr.federation.session import FederatedFitError, submit_fit
    from dsfr.pipeline.fit import read_ranges
    from dsfr.pipeline.options import AUTO, RULES, FitOptions
    from dsfr.storage.atomic import check_writable

    check_writable(output)
    waits = {"seconds": options.pop("timeout"), "round_seconds": options.pop("round_seconds")}
    names = _names(features)
    solver = None if options["method"] in (AUTO, RULES) else "sums"
    asked = FitOptions(solver=solver, **options)
    declared = read_ranges(ranges, declared_columns(asked, names).schema, asked.target)
    plan = fit_plan(asked, names, declared)
    try:
        submit_fit(kit, plan, Roster.read(roster), output, **waits)
    except FederatedFitError as error:
        raise BadInputError(str(error)) from None
    click.echo(f"model: {output}")


@federation.command()
@_KIT
def status(kit: Path) -> None:
    """Owners that are connected; with the kit of a lead."""
    from dsfr.federation.session import connected_owners

    for name in connected_owners(kit):
        click.echo(name)


@federation.command()
@_KIT
@click.argument("plan")
def consent(kit: Path, plan: str) -> None:
    """Agree to a fit that the journal shows as asked for."""
    from dsfr.federation.journal import AuditJournal

    AuditJournal(kit / "local" / "journal.jsonl").append("consent", plan=plan)
    click.echo(f"agreed to {plan}")


@federation.command()
@_KIT
def audit(kit: Path) -> None:
    """What left this site, when, in which fit and under which policy; a changed journal is an error."""
    from dsfr.federation.journal import AuditJournal, JournalError

    try:
        entries = AuditJournal(kit / "local" / "journal.jsonl").entries()
    except JournalError as error:
        raise BadInputError(str(error)) from None
    for entry in entries:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(entry["time"]))
        about = {name: value for name, value in entry.items() if name not in ("time", "event", "before", "digest")}
        click.echo(f"{when}  {entry['event']:<8} {json.dumps(about, sort_keys=True)}")
    click.echo(f"{len(entries)} lines, not changed since they were written")


def _names(features: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in features.split(",") if name.strip())
