"""MPI and dask are optional: all else imports and runs without them, and asking for them says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mpi4py", "dask", "distributed"):
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Blocked())
"""


def python(code):
    done = subprocess.run([sys.executable, "-c", BLOCKED + code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_else_imports_and_runs_without_them():
    told = python(
        "import pkgutil, importlib, dsfr\n"
        "for module in pkgutil.walk_packages(dsfr.__path__, 'dsfr.'):\n"
        "    if module.name != 'dsfr.__main__':\n"
        "        importlib.import_module(module.name)\n"
        "import numpy as np\n"
        "X = np.random.default_rng(0).uniform(size=(40, 2))\n"
        "print(dsfr.SFRRegressor(n_agents=3, engine=dsfr.InProcess(topology='ring')).fit(X, X[:, 0]).termination_)\n"
    )
    assert told.strip() == "converged"


@pytest.mark.slow
def test_the_tests_of_everything_else_pass_without_them(tmp_path):
    plugin = tmp_path / "blocked.py"
    plugin.write_text(BLOCKED)
    names = ("engine_contract", "agent_files", "mpi", "dask")
    chosen = [*(f"tests/test_{name}.py" for name in names), "-rs"]
    command = [sys.executable, "-m", "pytest", "-p", "blocked", "-p", "no:cacheprovider", *chosen]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "the MPI engine needs mpi4py" in done.stdout
    assert "the dask engine needs dask" in done.stdout


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("from dsfr.engines.mpi.engine import MPIEngine; MPIEngine({}, {})", "pip install 'dsfr[mpi-wheel]'"),
        ("from dsfr.engines.dask.engine import DaskEngine; DaskEngine(None, {'a': 1}, {})", "pip install 'dsfr[dask]'"),
        (
            "import dsfr; dsfr.SFRRegressor(engine='dask').fit([[1.0]], [1.0])",
            "pip install 'dsfr[dask]'",
        ),
    ],
)
def test_asking_for_them_says_what_to_install(code, complaint):
    told = python(f"try:\n    exec({code!r})\nexcept ImportError as error:\n    print(error)\n")
    assert complaint in told


@pytest.mark.parametrize("engine", ["mpi", "dask"])
def test_the_command_says_what_to_install(engine):
    told = python(
        "import pathlib, tempfile\n"
        "from click.testing import CliRunner\n"
        "from dsfr.cli import main\n"
        "folder = pathlib.Path(tempfile.mkdtemp())\n"
        "(folder / 'x-0.csv').write_text('a,y\\n1,2\\n2,3\\n')\n"
        f"done = CliRunner().invoke(main, ['fit', '--engine', {engine!r}, str(folder / 'x-*.csv'), '--target', 'y', "
        "'-o', str(folder / 'm')])\n"
        "print(done.exit_code, done.output)\n"
    )
    assert told.startswith("2 ")
    assert "pip install" in told
