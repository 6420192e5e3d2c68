"""The group of all commands: how errors, warnings and interrupts are told, and what commands share."""

from __future__ import annotations

import io
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dsfr import __version__

SOLVERS = ("admm", "exact", "decentralized")
TOPOLOGY_HELP = (
    "Messages along links only: complete, star, line, ring, grid, geometric, erdos-renyi, barabasi-albert, or a file "
    "with two agents per line.  [default: all talk to a coordinator]"
)

OPTION_OF = {"n_rules": "rules", "n_agents": "agents", "n_labels": "labels", "n_pairs": "pairs", "coverage": "interval"}
"""Options that are not called as the library's parameters are."""


class BadInputError(click.ClickException):
    """Something the user can correct."""

    exit_code = 2

    def format_message(self) -> str:
        """The message; names of files and columns in it do not steer the terminal."""
        from dsfr.core.explain.words import one_line

        return "\n".join(map(one_line, self.message.splitlines()))


class FriendlyGroup(click.Group):
    """A group whose commands answer bad input with one message and exit code 2, never with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, turning errors of the input into messages."""
        _make_streams_forgiving()
        # As Ctrl-C does: leave by way of the cleaning up.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            with _plain_warnings():
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            sys.exit(128 + signal.SIGINT)
        except (ValueError, OSError, ImportError) as error:
            raise BadInputError(self._in_options(ctx, _told(error))) from None
        except RuntimeError as error:
            from dsfr.engines import EngineError

            if not isinstance(error, EngineError):
                raise
            raise BadInputError(str(error)) from None
        except MemoryError:
            raise BadInputError("out of memory: use fewer rows or columns") from None

    def _in_options(self, ctx: click.Context, message: str) -> str:
        """A message that begins with a parameter of the library, with the option of the command in its place."""
        command = self.commands.get(ctx.invoked_subcommand or "")
        told = re.match(r"(\w+)=(\S+)", message)
        name = OPTION_OF.get(told[1], told[1]) if told else ""
        if not told or not command or name not in {parameter.name for parameter in command.params}:
            return message
        return f"--{name.replace('_', '-')} {told[2]}{message[told.end() :]}"


def _told(error: Exception) -> str:
    """What went wrong, without the system's number of it."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _one_letter(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    letter = "\t" if value in ("\\t", "tab") else value
    if len(letter) != 1 or letter in '\r\n"':
        raise click.BadParameter(f"{value!r} must be one character, or \\t for a tabulator.")
    return letter


delimiter_option = click.option(
    "--delimiter", default=",", show_default=True, callback=_one_letter, help="Separator of a CSV file; \\t is a tab."
)


def refuse_same_file(source: str, output: str) -> None:
    """Refuse to write over what is read."""
    if Path(output).exists() and Path(output).samefile(source):
        raise BadInputError(f"the output {output} is an input file: write elsewhere")


def examples(*lines: str) -> str:
    """Text of a command's examples."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@click.group(
    cls=FriendlyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "dsfr demo",
        "dsfr fit houses.csv --target price -o houses.dsfr",
        "dsfr predict houses.dsfr new.csv -o predicted.csv",
        "dsfr explain houses.dsfr",
        "dsfr report houses.dsfr houses.csv -o report.html",
        "dsfr reproduce --quick",
    ),
)
@click.version_option(__version__, "-V", "--version", prog_name="dsfr")
def main() -> None:
    """Readable fuzzy-rule regression from few labels and many unlabelled rows, on data spread over owners."""


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as lines on standard error, once all else has been said, without the place in the code."""
    said: list[str] = []

    def show(message: Warning | str, *_: object) -> None:
        from dsfr.core.explain.words import one_line

        said.append(f"Warning: {one_line(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        finally:
            for line in said:
                click.echo(line, err=True)


def _make_streams_forgiving() -> None:
    """Letters that a terminal's encoding lacks are shown as escapes, not as an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
