"""The lead's side: submit a fit, wait for it, and fetch the model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsfr.federation.nvflare_components import ERROR, MODEL, job_files
from dsfr.federation.roster import Roster


class FederatedFitError(RuntimeError):
    """A fit that ended without a model; the message has the coordinator's reason."""


def submit_fit(
    kit: Path, plan: Mapping[str, Any], roster: Roster, output: Path, *, seconds: float, round_seconds: float
) -> None:
    """Submit a fit, wait for its end, and write the model.

    Raises
    ------
    FederatedFitError
        If there is no model.
    """
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job"
        for path, text in job_files(plan, sorted(roster.fingerprints), round_seconds).items():
            (job / path).parent.mkdir(parents=True, exist_ok=True)
            (job / path).write_text(text)
        session = _open_session(kit)
        try:
            number = session.submit_job(str(job))
            meta = session.wait_for_job(number, timeout=seconds, poll_interval=0.5)
            result = Path(session.download_job_result(number, str(Path(folder) / "result")))
        finally:
            session.close()
        _take_result(result, str((meta or {}).get("status")), output)


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
    return new_secure_session(user_of(kit), str(kit.resolve()))


def user_of(kit: Path) -> str:
    """Name of the lead that a kit belongs to."""
    from cryptography.x509 import load_pem_x509_certificate
    from cryptography.x509.oid import NameOID

    certificate = load_pem_x509_certificate((kit / "startup" / "client.crt").read_bytes())
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def _take_result(result: Path, status: str, output: Path) -> None:
    found = next(iter(result.rglob(MODEL)), None)
    if found is None:
        error = next(iter(result.rglob(ERROR)), None)
        reason = error.read_text().strip() if error else f"the job ended with {status}; see the coordinator's log"
        raise FederatedFitError(reason)
    shutil.copyfile(found, output)
