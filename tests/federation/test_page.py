"""docs/federation.md is followed literally, in a shell: seven kits, six processes, a check, a fit and an audit."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dsfr
from dsfr.federation.loopback import free_port
from dsfr.federation.processes import descendants
from tests.documents import ROOT, blocks_of

pytest.importorskip("nvflare", reason="federations need NVFlare: pip install 'dsfr[federation]'")
SECONDS = 1500.0
"""Most time for the page, which takes about two minutes on two idle cores."""


@pytest.mark.slow
def test_the_page_is_followed_literally(tmp_path):
    blocks = [block.code for block in blocks_of((ROOT / "docs" / "federation.md").read_text()) if block.kind == "bash"]
    script = "set -e -o pipefail\n" + "\n".join(blocks).replace("8402", str(free_port()))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    surroundings = {**os.environ, "PATH": programs, "HOME": str(tmp_path)}
    with (tmp_path / "said.txt").open("w") as said:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=tmp_path, env=surroundings, stdout=said, stderr=said, start_new_session=True
        )
        try:
            code = shell.wait(SECONDS)
        finally:
            left = [*descendants(shell.pid), shell.pid] if shell.poll() is None else []
            for pid in left:
                os.kill(pid, signal.SIGKILL)
    text = (tmp_path / "said.txt").read_text()
    assert code == 0, text[-3000:]
    assert text.count(": fits\n") == 5
    assert "lines, not changed since they were written" in text
    model = dsfr.load(tmp_path / "model.dsfr")
    assert len(model.training["federation"]["roster"]) == 5
