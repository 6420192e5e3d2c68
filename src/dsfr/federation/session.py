"""The lead's side: submit a fit, wait for it, and fetch the model."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsfr.federation.nvflare_components import ANSWERS, ERROR, MODEL, PROGRESS, job_files
from dsfr.federation.progress import describe_progress
from dsfr.federation.roster import Roster

POLL_SECONDS = 0.5


class FederatedFitError(RuntimeError):
    """A fit that ended without a model; the message has the coordinator's reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a lead asks the coordinator for."""

    plan: Mapping[str, Any]
    roster: Roster
    seconds: float
    """Most time until its end."""
    round_seconds: float
    is_check: bool = False

    def write(self, folder: Path) -> None:
        """Write the files that NVFlare takes."""
        files = job_files(self.plan, sorted(self.roster.fingerprints), self.round_seconds, self.is_check)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)


def submit_fit(kit: Path, job: Job, output: Path, show: Callable[[str], None]) -> None:
    """Submit a fit, wait for its end, and write the model; ``show`` is told how far it is.

    Raises
    ------
    FederatedFitError
        If there is no model.
    """
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(_result_file(kit, job, Path(folder), MODEL, show), output)


def submit_check(kit: Path, job: Job, show: Callable[[str], None]) -> dict[str, list[int] | str]:
    """Answers of every owner about its table, or why it has none.

    Raises
    ------
    FederatedFitError
        If nobody could be asked.
    """
    with tempfile.TemporaryDirectory() as folder:
        text = _result_file(kit, replace(job, is_check=True), Path(folder), ANSWERS, show).read_text()
    answers: dict[str, list[int] | str] = json.loads(text)
    return {name: answers.get(name, "no answer in time") for name in sorted(job.roster.fingerprints)}


def _result_file(kit: Path, job: Job, folder: Path, name: str, show: Callable[[str], None]) -> Path:
    """Run a job and fetch the file that it leaves."""
    job.write(folder / "job")
    show("connecting to the coordinator")
    session = _open_session(kit)
    try:
        number = session.submit_job(str(folder / "job"))
        status = _wait(session, number, job.seconds, show)
        result = Path(session.download_job_result(number, str(folder / "result")))
    finally:
        session.close()
    found = next(iter(result.rglob(name)), None)
    if found is None:
        error = next(iter(result.rglob(ERROR)), None)
        reason = error.read_text().strip() if error else f"the job ended with {status}; see the coordinator's log"
        raise FederatedFitError(reason)
    return found


def _wait(session: Any, number: str, seconds: float, show: Callable[[str], None]) -> str:
    """Wait for the end of a job, which does not go on if nobody waits for it; its status."""

    def on_poll(session: Any, number: str, meta: Mapping[str, Any]) -> bool:
        show(_describe(session, number, str(meta.get("status"))))
        return True

    try:
        code, meta = session.monitor_job_and_return_job_meta(number, seconds, POLL_SECONDS, on_poll)
    except KeyboardInterrupt:
        show("stopping the job")
        session.abort_job(number)
        raise
    if code.name == "TIMEOUT":
        session.abort_job(number)
        raise FederatedFitError(f"there is no model after {seconds:g} s (--timeout): the job was stopped")
    return str((meta or {}).get("status"))


def _describe(session: Any, number: str, status: str) -> str:
    if status != "RUNNING":
        return f"the job is {status.lower()}"
    with suppress(Exception):  # it may end at any moment, and NVFlare raises many kinds of errors
        return describe_progress(session.do_app_command(number, PROGRESS, None))
    return "the job starts"


def connected_owners(kit: Path) -> list[str]:
    """Names of the owners that are connected to the coordinator."""
    session = _open_session(kit)
    try:
        return sorted(str(one.name) for one in session.get_connected_client_list())
    finally:
        session.close()


def _open_session(kit: Path) -> Any:
    try:
        from nvflare.fuel.flare_api.flare_api import new_secure_session
    except ImportError as error:
        raise ImportError("federations need NVFlare: pip install 'dsfr[federation]'") from error
    with redirect_stdout(io.StringIO()):  # NVFlare says that it connects
        return new_secure_session(user_of(kit), str(kit.resolve()))


def user_of(kit: Path) -> str:
    """Name of the lead that a kit belongs to."""
    from cryptography.x509 import load_pem_x509_certificate
    from cryptography.x509.oid import NameOID

    certificate = load_pem_x509_certificate((kit / "startup" / "client.crt").read_bytes())
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
