"""The gallery: scripts that are run when the site is built, shown with what they print and draw.

A script begins with a docstring (title, empty line, introduction). ``# %%`` starts a cell; comment lines right after it
are the text above the cell's code.
"""

import ast
import contextlib
import io
import os
import re
import traceback
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt


def run_gallery(folder, scratch):
    """Pages, pictures and files of all scripts, by name."""
    made, listed = {}, []
    for path in sorted(folder.glob("*.py")):
        title, introduction = _docstring(path)
        listed.append(f"- [{title}]({path.stem}.md): {introduction.split('. ')[0].rstrip('.')}.")
        made |= _run(path, title, introduction, scratch / path.stem)
    made["index.md"] = (
        "# Gallery\n\nEvery example is a script of the repository (`docs/gallery`), run when this site is built, on "
        "data that come with scikit-learn.\n\n" + "\n".join(listed) + "\n"
    )
    return made


def _run(path, title, introduction, scratch):
    """One script's page, and what it drew and wrote."""
    scratch.mkdir(parents=True, exist_ok=True)
    made, namespace = {}, {"__name__": "__gallery__", "__file__": str(path)}
    parts = [f"# {title}", introduction]
    with contextlib.chdir(scratch):
        for n, (text, code) in enumerate(_cells(path)):
            printed = _execute(code, namespace, path)
            parts += [text, f"```python\n{code}\n```"]
            if printed:
                parts.append(f'```text title="printed"\n{printed}\n```')
            for m, number in enumerate(plt.get_fignums()):
                name = f"{path.stem}-{n}-{m}.png"
                made[name] = _picture(number)
                parts.append(f"![{title}, figure]({name})")
            plt.close("all")
    for file in sorted(scratch.iterdir()):
        if file.suffix == ".html":
            made[file.name] = file.read_bytes()
            parts.append(f'<p><a href="{file.name}">Open {file.name}</a></p>')
    made[f"{path.stem}.md"] = "\n\n".join(part for part in parts if part) + "\n"
    return made


def _docstring(path):
    title, _, introduction = ast.get_docstring(ast.parse(path.read_text())).partition("\n\n")
    return title.rstrip("."), introduction.strip()


def _cells(path):
    """Text and code of every cell."""
    for cell in re.split(r"^# %%.*\n", path.read_text(), flags=re.MULTILINE)[1:]:
        lines = cell.splitlines()
        n_text = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        text = "\n".join(line.removeprefix("#").strip() for line in lines[:n_text])
        yield text, "\n".join(lines[n_text:]).strip()


def _execute(code, namespace, path):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(code, str(path), "exec"), namespace)
        except Exception:
            raise SystemExit(f"the gallery's {path.name} fails:\n{traceback.format_exc()}") from None
    return printed.getvalue().replace(os.fspath(Path.cwd()) + os.sep, "").rstrip()


def _picture(number):
    data = io.BytesIO()
    plt.figure(number).savefig(data, dpi=110, metadata={"Software": None})
    return data.getvalue()
