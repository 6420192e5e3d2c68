"""Kits by certificate requests: private keys never leave their site, and NVFlare's lax defaults are replaced."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from dsfr.federation.processes import stop_with_descendants
from dsfr.storage.lock import FileLock

MODULE = "dsfr.federation.nvflare_components"
SERVER, OWNER = "nvflare.private.fed.app.server.server_train", "dsfr.federation.owner_daemon"
"""Programs of daemons."""
KINDS = {"site": {"type": "client"}, "coordinator": {"type": "server"}, "lead": {"type": "admin", "role": "lead"}}
"""Participants by our name for them."""
CA, PROFILE = "ca", "project.yaml"


class ProvisioningError(ValueError):
    """NVFlare refused a step of provisioning; the message has its reason."""


def nvflare(*arguments: str) -> str:
    """Run a command of NVFlare in this process, which saves seconds of imports each; its output.

    Raises
    ------
    ProvisioningError
        If it fails.
    """
    try:
        from nvflare.cli import run
    except ImportError as error:
        raise ImportError("federations need NVFlare: pip install 'dsfr[federation]'") from error
    shown, given = io.StringIO(), sys.argv
    sys.argv = ["nvflare", *arguments]
    try:
        with redirect_stdout(shown), redirect_stderr(shown):
            run("nvflare")
    except SystemExit as end:
        if end.code:
            raise ProvisioningError(shown.getvalue().strip()[-1000:]) from None
    finally:
        sys.argv = given
    return shown.getvalue()


def init_project(folder: Path, name: str, host: str, port: int) -> str:
    """Make a project with its own certificate authority; the authority's fingerprint, to be told out of band."""
    folder.mkdir(parents=True, exist_ok=False)
    server = {"host": host, "fed_learn_port": port, "admin_port": port}
    profile = {"name": name, "scheme": "grpc", "connection_security": "mtls", "server": server}
    (folder / PROFILE).write_text(json.dumps(profile))  # JSON is YAML
    nvflare("cert", "init", "--profile", str(folder / PROFILE), "-o", str(folder / CA))
    return authority_fingerprint(folder / CA / "rootCA.pem")


def authority_fingerprint(path: Path) -> str:
    """Fingerprint of a certificate authority as NVFlare writes it."""
    from dsfr.federation.roster import fingerprint_of

    digits = fingerprint_of(path).upper()
    return "SHA256:" + ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))


def request(folder: Path, project: str, name: str, organisation: str, kind: str, port: int | None = None) -> Path:
    """Make a key, which stays in ``folder``, and a request for a certificate; the file to send to the project."""
    if not re.fullmatch(r"\w+", organisation, re.ASCII):
        raise ValueError(f"organisation={organisation!r} must be of letters, digits and underscores")
    participant: dict[str, Any] = {"name": name, "org": organisation, **KINDS[kind]}
    if kind == "coordinator":
        participant |= {"fed_learn_port": port, "admin_port": port}
    folder.parent.mkdir(parents=True, exist_ok=True)
    definition = folder.with_suffix(".yaml")
    definition.write_text(json.dumps({"name": project, "participants": [participant]}))
    nvflare("cert", "request", "-p", str(definition), "--out", str(folder))
    return next(folder.glob("*.request.zip"))


def approve(project: Path, request_file: Path, signed: Path) -> None:
    """Sign a request with the project's certificate authority."""
    profile = str(project / PROFILE)
    nvflare("cert", "approve", "-c", str(project / CA), "--profile", profile, "--out", str(signed), str(request_file))


def join(signed: Path, request_folder: Path, fingerprint: str, kit: Path) -> None:
    """Make a kit from a signed request and the own key, and replace NVFlare's defaults in it."""
    workspace = kit.with_name(f".{kit.name}-workspace")
    workspace.mkdir()
    try:
        shutil.copyfile(signed, named := workspace / "kit.signed.zip")  # NVFlare insists on the ending
        nvflare(
            "package",
            str(named),
            "--request-dir",
            str(request_folder),
            "-w",
            str(workspace),
            "--fingerprint",
            fingerprint,
        )
        made = next(path.parent for path in workspace.glob("*/prod_*/*/startup"))
        shutil.move(made, kit)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)
    harden(kit)


def harden(kit: Path) -> None:
    """Replace defaults of a kit: own classes only, no code in jobs, no shell, no streamed logs, storage in the kit.

    Scripts that would start NVFlare's own daemon, and not that of `daemon_command`, are removed.
    """
    for path in (kit / "startup").glob("*.sh"):
        path.unlink()
    for path in [kit, *kit.rglob("*")]:
        path.chmod(0o700 if path.is_dir() or path.suffix == ".sh" else 0o600)
    local = kit / "local"
    default = local / "resources.json.default"
    resources = json.loads(default.read_text())
    resources |= {"class_list_enforcement_mode": "enforce", "allow_log_streaming": False}
    resources["class_allow_list"] = [f"{MODULE}.FitController", f"{MODULE}.FitExecutor"]
    resources["components"] = [
        component for component in resources.get("components", []) if "log" not in str(component.get("id"))
    ]
    _keep_storage_inside(resources, kit.resolve() / "storage")
    (local / "resources.json").write_text(json.dumps(resources, indent=2))
    if (local / "authorization.json.default").is_file():
        (local / "authorization.json").write_text(json.dumps(_AUTHORIZATION, indent=2))
    for path in local.glob("resources.json"):
        path.chmod(0o600)


_NOTHING = {right: "none" for right in ("byoc", "shell_commands", "operate", "server-predeployed-flwr")}
_AUTHORIZATION = {
    "format_version": "1.0",
    "permissions": {
        "lead": {
            "submit_job": "any",
            "clone_job": "none",
            "manage_job": "n:submitter",
            "download_job": "n:submitter",
            "view": "any",
            **_NOTHING,
        }
    },
}


def _keep_storage_inside(resources: Any, folder: Path) -> None:
    """Replace every path in NVFlare's temporary folder."""
    if isinstance(resources, dict):
        for name, value in resources.items():
            if isinstance(value, str) and value.startswith("/tmp/nvflare/"):
                resources[name] = str(folder / value.rpartition("/")[2])
            else:
                _keep_storage_inside(value, folder)
    elif isinstance(resources, list):
        for value in resources:
            _keep_storage_inside(value, folder)


def daemon_command(kit: Path) -> list[str]:
    """The command that runs a kit's server or client in the foreground."""
    is_server = (kit / "startup" / "fed_server.json").is_file()
    name, module = ("fed_server.json", SERVER) if is_server else ("fed_client.json", OWNER)
    settings = ["secure_train=true", "config_folder=config"]
    if not is_server:
        settings.append(f"uid={json.loads((kit / 'startup' / name).read_text())['client']['fqsn']}")
    run = [sys.executable, "-m", module, "-m", str(kit.resolve()), "-s", name]
    return [*run, "--set", *settings]


OUTCOME_SECONDS = "NVFLARE_CLIENT_OUTCOME_WAIT_TIMEOUT"
"""How long a coordinator waits for owners that have left a fit after its last round; 900 s by default."""


def run_daemon(kit: Path, see: Callable[[str], None] | None = None) -> int:
    """Run a kit's server or client until it ends or is interrupted; nothing of it stays behind.

    ``see`` is called with every line that it writes.
    """
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # scripts start what is in their background without it
    lock = used_by_one(kit)
    shown: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if see else {}
    settings: dict[str, Any] = {"cwd": kit, "env": {**os.environ, OUTCOME_SECONDS: "30"}, "start_new_session": True}
    process = subprocess.Popen(daemon_command(kit), text=True, errors="replace", **settings, **shown)
    if see is not None:
        threading.Thread(target=_pass_on, args=(process.stdout, see), daemon=True).start()
    try:
        return process.wait()
    except KeyboardInterrupt:
        return 130
    finally:
        stop_with_descendants(process)
        del lock


def _pass_on(lines: Iterable[str], see: Callable[[str], None]) -> None:
    for line in lines:
        sys.stdout.write(line)
        sys.stdout.flush()
        see(line)


def used_by_one(kit: Path) -> FileLock:
    """A lock of a kit: NVFlare lets a second login with the same kit end the first without a word.

    Raises
    ------
    ValueError
        If another process uses it. Copies on other machines are noticed by the coordinator (`copies`).
    """
    lock = FileLock(kit / "local" / "lock")
    if not lock.acquired:
        raise ValueError(f"another process uses the kit {kit}: end it first, or make a kit for each")
    return lock
