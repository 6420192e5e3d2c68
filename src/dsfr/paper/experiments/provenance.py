"""Provenance of results: versions, processor, commit. Hosts, users and folders are not named."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from dsfr import __version__


def describe_machine() -> dict[str, str | int]:
    """Processor, and versions of the numerical packages."""
    packages = ("numpy", "scipy", "scikit-learn")
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def describe_source() -> dict[str, str | None]:
    """Version of dsfr and, in a checkout, the commit, with a mark if files have changed."""
    return {"version": __version__, "git": _commit()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str | None:
    package = Path(__file__).resolve().parents[2]
    if not (package.parents[1] / ".git").exists():
        return None
    try:
        commit = _git(package, "rev-parse", "HEAD")
        return commit + ("+changes" if _git(package, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
