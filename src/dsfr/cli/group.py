"""The group of all commands: how errors, warnings and interrupts are shown, and shared options."""

from __future__ import annotations

import io
import re
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dsfr import __version__

SOLVERS = ("sums", "conjugate", "admm", "few-rounds", "private-sums", "decentralized")
TOPOLOGY_HELP = (
    "Messages along links only: complete, star, line, ring, grid, geometric, erdos-renyi, barabasi-albert, or a file "
    "with two agents per line.  [default: all talk to a coordinator]"
)

OPTION_OF = {
    "n_rules": "rules",
    "max_rules": "rules",
    "n_agents": "agents",
    "n_labels": "labels",
    "n_pairs": "pairs",
    "coverage": "interval",
}
"""Options whose names differ from those of the library's parameters."""


class BadInputError(click.ClickException):
    """An error that the user can correct."""

    exit_code = 2

    def format_message(self) -> str:
        """The message without control characters, which names of files and columns may contain."""
        from dsfr.core.explain.words import one_line

        return "\n".join(map(one_line, self.message.splitlines()))


class GroupedCommand(click.Command):
    """A command whose help shows its options under headings."""

    def __init__(self, *args: Any, option_groups: Mapping[str, Sequence[str]], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.option_groups = option_groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options group by group; those in none come last."""
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        parameters = {str(option.name): option for option in options}
        grouped = {name for names in self.option_groups.values() for name in names}
        others = [name for name in parameters if name not in grouped]
        for heading, names in (*self.option_groups.items(), ("Other", others)):
            records = [parameters[name].get_help_record(ctx) for name in names]
            if any(records):
                with formatter.section(heading):
                    formatter.write_dl([record for record in records if record is not None])


class FriendlyGroup(click.Group):
    """A group whose commands answer bad input with one message and exit code 2, never with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, turning errors of the input into messages."""
        _make_streams_forgiving()
        # As for Ctrl-C: raise an exception, so that temporary files are removed.
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
            raise BadInputError(self._in_options(ctx, _text_of(error))) from None
        except RuntimeError as error:
            from dsfr.engines import EngineError

            if not isinstance(error, EngineError):
                raise
            raise BadInputError(str(error)) from None
        except MemoryError:
            raise BadInputError("out of memory: use fewer rows or columns") from None

    def _in_options(self, ctx: click.Context, message: str) -> str:
        """The message, with a parameter of the library at its beginning replaced by the option of the command."""
        command = self.commands.get(ctx.invoked_subcommand or "")
        found = re.match(r"(\w+)=(\S+)", message)
        name = OPTION_OF.get(found[1], found[1]) if found else ""
        if not found or not command or name not in {parameter.name for parameter in command.params}:
            return message
        return f"--{name.replace('_', '-')} {found[2]}{message[found.end() :]}"


def _text_of(error: Exception) -> str:
    """The text of an error, without the system's error number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _one_letter(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    letter = "\t" if value in ("\\t", "tab") else value
    if len(letter) != 1 or letter in '\r\n"':
        raise click.BadParameter(f"{value!r} must be one character, or \\t for a tabulator.")
    return letter


_delimiter = click.option(
    "--delimiter",
    metavar="CHAR",
    callback=_one_letter,
    help="Separator of a CSV file; \\t is a tab.  [default: guessed from the first lines]",
)
_decimal = click.option(
    "--decimal",
    type=click.Choice([".", ","]),
    help="Decimal mark of a CSV file.  [default: guessed from the first lines]",
)


def dialect_options(command: Any) -> Any:
    """Options that say how a CSV file is written."""
    return _delimiter(_decimal(command))


def guessed_dialect(data: str, delimiter: str | None, decimal: str | None) -> tuple[str, str]:
    """Separator and decimal mark of a table; a guess that is not the usual one is said on standard error."""
    from dsfr.io.files import dialect_of, find_files

    found = dialect_of(find_files(data)[0], delimiter, decimal)
    unusual = [f"separated by {found[0]!r}"] if delimiter is None and found[0] != "," else []
    unusual += ["decimals with a comma"] if decimal is None and found[1] == "," else []
    if unusual:
        click.echo(f"{data} is read as {', '.join(unusual)}; --delimiter and --decimal say otherwise", err=True)
    return found


def refuse_same_file(source: str, output: str) -> None:
    """Refuse an output that is an input."""
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
    """Readable fuzzy-rule regression from few labels and many unlabelled rows, on data of several owners."""


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings as lines on standard error, after all other output and without the line of code."""
    shown: list[str] = []

    def show(message: Warning | str, *_: object) -> None:
        from dsfr.core.explain.words import one_line

        shown.append(f"Warning: {one_line(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        finally:
            for line in shown:
                click.echo(line, err=True)


def _make_streams_forgiving() -> None:
    """Show characters that the terminal's encoding lacks as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
