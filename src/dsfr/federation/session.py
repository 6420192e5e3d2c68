"""The lead's side: submit a fit, wait for it, and fetch the model."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsfr.federation.nvflare_components import ANSWERS, ERROR, MODEL, PROGRESS, job_files
from dsfr.federation.progress import describe_progress
from dsfr.federation.roster import Roster

POLL_SECONDS = 0.5
CONNECT_SECONDS = 30.0
"""A coordinator on a busy machine takes more than NVFlare's ten."""
HEARD_SECONDS = 30.0
"""Owners are heard every ten seconds; one that was not for so long, while others were, has left."""
START_SECONDS = 45.0
"""A job that has not started after this is given up if an owner has left: NVFlare would try for an hour."""


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
        missing = sorted(set(job.roster.fingerprints) - set(_last_heard(session)))
        if missing:
            raise FederatedFitError(_not_there(missing))
        number = session.submit_job(str(folder / "job"))
        status = _wait(session, number, job, show)
        result = Path(session.download_job_result(number, str(folder / "result")))
    finally:
        session.close()
    found = next(iter(result.rglob(name)), None)
    if found is None:
        error = next(iter(result.rglob(ERROR)), None)
        reason = error.read_text().strip() if error else f"the job ended with {status}; see the coordinator's log"
        raise FederatedFitError(reason)
    return found


def _wait(session: Any, number: str, job: Job, show: Callable[[str], None]) -> str:
    """Wait for the end of a job, which does not go on if nobody waits for it; its status."""
    start = _Start(sorted(job.roster.fingerprints))

    def on_poll(session: Any, number: str, meta: Mapping[str, Any]) -> bool:
        status = str(meta.get("status"))
        show(_describe(session, number, status))
        with suppress(Exception):  # the coordinator may not answer once, and NVFlare raises many kinds of errors
            return status != "SUBMITTED" or not start.missing(_last_heard(session))
        return True

    try:
        code, meta = session.monitor_job_and_return_job_meta(number, job.seconds, POLL_SECONDS, on_poll)
    except KeyboardInterrupt:
        show("stopping the job")
        session.abort_job(number)
        raise
    if code.name == "ENDED_BY_CB":
        session.abort_job(number)
        raise FederatedFitError(_not_there(start.found))
    if code.name == "TIMEOUT":
        session.abort_job(number)
        raise FederatedFitError(f"there is no model after {job.seconds:g} s (--timeout): the job was stopped")
    return str((meta or {}).get("status"))


class _Start:
    """Notices owners that are not heard while a job waits for its start; by the coordinator's clock alone."""

    def __init__(self, names: list[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._names, self._clock = names, clock
        self._first: tuple[float, Mapping[str, float]] | None = None
        self.found: list[str] = []
        """Owners that were missing when they were last looked for."""

    def missing(self, heard: Mapping[str, float]) -> list[str]:
        """Owners that were not heard since the first question, once it is long ago."""
        if self._first is None:
            self._first = self._clock(), heard
        begun, first = self._first
        is_late = self._clock() - begun >= START_SECONDS
        self.found = [name for name in self._names if is_late and heard.get(name) == first.get(name)]
        return self.found


def _last_heard(session: Any) -> dict[str, float]:
    """When the coordinator last heard the owners that it believes to be connected, by name."""
    return {str(one.name): float(one.last_connect_time or 0.0) for one in session.get_connected_client_list()}


def _not_there(names: list[str]) -> str:
    verb = "is" if len(names) == 1 else "are"
    return f"{', '.join(names)} {verb} not connected: run the fit again when everybody is back"


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
        return present(_last_heard(session))
    finally:
        session.close()


def present(heard: Mapping[str, float]) -> list[str]:
    """Owners that were heard when others were: a coordinator lists those that have left for ten minutes.

    >>> present({"b": 1000.0, "a": 1008.0, "c": 940.0})
    ['a', 'b']
    """
    newest = max(heard.values(), default=0.0)
    return sorted(name for name, last in heard.items() if last >= newest - HEARD_SECONDS)


def _open_session(kit: Path) -> Any:
    try:
        from nvflare.fuel.flare_api.flare_api import new_secure_session
    except ImportError as error:
        raise ImportError("federations need NVFlare: pip install 'dsfr[federation]'") from error
    with redirect_stdout(io.StringIO()):  # NVFlare says that it connects
        return new_secure_session(user_of(kit), str(kit.resolve()), timeout=CONNECT_SECONDS)


def user_of(kit: Path) -> str:
    """Name of the lead that a kit belongs to."""
    from cryptography.x509 import load_pem_x509_certificate
    from cryptography.x509.oid import NameOID

    certificate = load_pem_x509_certificate((kit / "startup" / "client.crt").read_bytes())
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
