"""A lead that asks for what it should not get: commands and jobs from standard input, answers as JSON.

Run as a program, ``python lead.py KIT``, because NVFlare's sessions leave threads behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

JOB_SECONDS, CONNECT_SECONDS = 100.0, 60.0


def answers(sites, kit, *, commands=(), jobs=()):
    """What the lead of a kit hears to commands of NVFlare's console, and what became of its jobs."""
    run = [sys.executable, __file__, kit]
    asked = json.dumps({"commands": list(commands), "jobs": list(jobs)})
    options = {"cwd": sites.folder, "env": sites._environment, "text": True, "timeout": 400, "check": False}
    done = subprocess.run(run, input=asked, capture_output=True, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    from dsfr.federation.session import user_of

    kit, asked = Path(sys.argv[1]), json.load(sys.stdin)
    session = new_secure_session(user_of(kit), str(kit.resolve()), timeout=CONNECT_SECONDS)
    try:
        said = [told(session, command) for command in asked["commands"]]
        ended = [status(session, files) for files in asked["jobs"]]
    finally:
        session.close()
    print()
    print(json.dumps({"commands": said, "jobs": ended}))


def told(session, command) -> str:
    try:
        return str(session._do_command(command, enforce_meta=False))
    except Exception as error:  # NVFlare raises many kinds
        return f"{type(error).__name__}: {error}"


def status(session, files) -> str:
    """How a job of these files ended."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            (Path(folder) / "job" / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / "job" / path).write_text(text)
        number = session.submit_job(str(Path(folder) / "job"))
    _, meta = session.monitor_job_and_return_job_meta(number, JOB_SECONDS, 0.5, lambda *_: True)
    if "RUNNING" in str((meta or {}).get("status")):
        session.abort_job(number)
    return str(meta)


if __name__ == "__main__":
    main()
