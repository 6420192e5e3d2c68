"""Code blocks of documents, and how they are run: in order, in one folder and one namespace per document."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from dsfr.cli import main

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"```(?P<kind>\w+)[^\n]*\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
EXCEPTIONS = {
    "pip install": "tests install nothing: name and extras must be those of pyproject.toml; .ci/package runs it",
    "make": "targets must exist, what they would do is not done: .ci/run and .ci/package run the long ones",
    ". .venv/bin/activate": "the environment is that of the tests",
    "docs/federation.md": "its shell blocks are one program with processes; tests/federation/test_page.py runs it",
}
"""Commands and documents that are not run as they stand, and why: all other blocks of all documents are run."""
RUN = {"python", "bash"}
HEREDOC = re.compile(r"^cat > (\S+) << 'END'\n(.*?)^END$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code of a document."""

    kind: str
    code: str
    printed: str | None
    """What the document says that it prints: the text block right after it."""
    line: int


def blocks_of(text: str) -> list[Block]:
    """The blocks of Python and of shell commands."""
    found = list(FENCE.finditer(text))
    blocks = []
    for number, match in enumerate(found):
        after = found[number + 1] if number + 1 < len(found) else None
        said = after["code"] if after and after["kind"] == "text" and after.start() == match.end() + 1 else None
        line = text.count("\n", 0, match.start("code")) + 1
        if match["kind"] in RUN:
            blocks.append(Block(match["kind"], match["code"], said, line))
    return blocks


def run_python(block: Block, namespace: dict[str, Any], name: str) -> str:
    """Run a block; a session with prompts must print what it shows. Returns what was printed."""
    printed = io.StringIO()
    if block.code.lstrip().startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block.code, namespace, name, name, block.line)
        outcome = doctest.DocTestRunner().run(test, out=printed.write, clear_globs=False)
        assert outcome.failed == 0, printed.getvalue()
        namespace.update(test.globs)
        return ""
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, f"{name}:{block.line}", "exec"), namespace)
    return printed.getvalue()


def run_shell(block: Block) -> None:
    """Run the commands of a block in the present folder: ``dsfr`` and scripts of the repository, in this process.

    What starts processes of its own is run as a program.
    """
    code = re.sub(r"\\\n\s*", " ", HEREDOC.sub(_written, block.code))
    for command in code.splitlines():
        words = shlex.split(command, comments=True)
        if not words:
            continue
        if words[0] == "mpiexec" or (words[0] == "dsfr" and "dask" in words):
            _run_program(words)
        elif words[0] == "dsfr":
            result = CliRunner().invoke(main, words[1:])
            assert result.exit_code == 0, f"{command}\n{result.output}"
        elif words[:2] == ["pip", "install"]:
            _check_installed(words[2:])
        elif words[0] == "make":
            _check_targets(words[1:])
        elif words == [".", ".venv/bin/activate"]:
            continue
        elif words[0] == "python" and (ROOT / words[1]).is_file():
            _run_script(words[1:])
        else:
            raise AssertionError(f"line {block.line}: {command!r} cannot be run here")


def _check_installed(requirements: list[str]) -> None:
    """Nothing is installed: the package and its extras must be those of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in requirements:
        name, _, extras = requirement.removesuffix("]").partition("[")
        assert name == project["name"], requirement
        assert set(extras.split(",")) - {""} <= project["optional-dependencies"].keys(), requirement


def _check_targets(targets: list[str]) -> None:
    done = subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _written(match: re.Match[str]) -> str:
    Path(match[1]).write_text(match[2])
    return ""


def _run_program(words: list[str]) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"


def _run_script(words: list[str]) -> None:
    given, sys.argv = sys.argv, words
    try:
        runpy.run_path(str(ROOT / words[0]), run_name="__main__")
    finally:
        sys.argv = given
