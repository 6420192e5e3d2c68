"""Commands of a federation: provisioning, daemons, checks, fits and audits."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from dsfr.cli.group import BadInputError, main

_FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
_TABLE = click.Path(exists=True, dir_okay=False, path_type=Path)
KIT = click.option(
    "--kit", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of the own kit."
)


@main.group(short_help="Train together with other organisations.")
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
@click.argument("request_file", type=FILE)
@click.option("--project", required=True, type=_FOLDER, help="Folder of the project.")
@click.option("-o", "--output", required=True, type=FILE, help="Signed request, to send back.")
def approve(request_file: Path, project: Path, output: Path) -> None:
    """Sign a request; look at who it is from first."""
    from dsfr.federation import kits

    kits.approve(project, request_file, output)
    click.echo(f"signed: {output}")


@federation.command()
@click.argument("signed", type=FILE)
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
@KIT
@click.option("--roster", required=True, type=FILE, help="Names and fingerprints of all owners (TOML).")
def coordinator(kit: Path, roster: Path) -> None:
    """Run the coordinator, until Ctrl-C."""
    from dsfr.federation.copies import CopyWatch
    from dsfr.federation.kits import run_daemon
    from dsfr.federation.nvflare_components import ROSTER
    from dsfr.federation.roster import Roster

    Roster.read(roster)
    (kit / "local" / ROSTER).write_bytes(roster.read_bytes())
    raise SystemExit(run_daemon(kit, CopyWatch(kit, lambda text: click.echo(f"WARNING: {text}", err=True)).see))


@federation.command()
@KIT
@click.option("--data", required=True, type=_TABLE, help="The own table.")
@click.option("--target", required=True, help="Column of the target.")
@click.option("--roster", required=True, type=FILE, help="Names and fingerprints of all owners (TOML).")
@click.option("--policy", type=FILE, help="Rules that are tighter than the defaults (TOML).")
@click.option("--units", type=FILE, help="Units of the own columns (TOML), compared with those of a plan.")
@click.option("--standing-consent", is_flag=True, help="Agree to every fit that keeps the policy.")
def agent(
    kit: Path, data: Path, target: str, roster: Path, policy: Path | None, units: Path | None, standing_consent: bool
) -> None:
    """Run an owner's site, until Ctrl-C."""
    from dsfr.federation.kits import run_daemon
    from dsfr.federation.owner_site import OwnerSite, SiteConfiguration
    from dsfr.pipeline.ranges import read_units

    name = json.loads((kit / "startup" / "fed_client.json").read_text())["client"]["fqsn"]
    SiteConfiguration(
        name=name,
        data=str(data.resolve()),
        target=target,
        roster=str(roster.resolve()),
        policy=None if policy is None else str(policy.resolve()),
        standing_consent=standing_consent,
        units={} if units is None else read_units(units),
    ).write(kit)
    OwnerSite(kit)
    raise SystemExit(run_daemon(kit))


@federation.command()
@KIT
@click.argument("name")
@click.option("--policy", "policy_file", type=FILE, help="Rules other than those the agent was started with (TOML).")
def plan(kit: Path, name: str, policy_file: Path | None) -> None:
    """What a fit would make leave this site, before agreeing to it: tasks, arrays, sizes and most rounds."""
    from dsfr.disclosure import Policy
    from dsfr.federation.owner_site import SiteConfiguration
    from dsfr.federation.plans import asked_plan, describe_plan

    found = asked_plan(kit, name)
    own = policy_file or SiteConfiguration.read(kit).policy
    for line in describe_plan(found, Policy() if own is None else Policy.read(own)):
        click.echo(line)


@federation.command()
@KIT
@click.argument("plan")
def consent(kit: Path, plan: str) -> None:
    """Agree to a fit that the journal shows as asked for."""
    from dsfr.federation.journal import AuditJournal
    from dsfr.federation.plans import asked_plan

    asked_plan(kit, plan)
    AuditJournal(kit / "local" / "journal.jsonl").append("consent", plan=plan)
    click.echo(f"agreed to {plan}")


@federation.command()
@KIT
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
