"""What mkdocs does beyond its pages: the README as home, files from outside the folder, and an executed gallery."""

import re
import sys
from pathlib import Path

from mkdocs.structure.files import File, Files

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

from gallery import run_gallery  # noqa: E402  (beside this file, which mkdocs does not import as part of a package)

PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
FOLDERS = ("benchmarks/results", "experiments")


def on_config(config):
    """Every decision is in the navigation, under its title."""
    decisions = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    for entry in config["nav"]:
        if "Decisions" in entry:
            entry["Decisions"] += [{_title(path): f"adr/{path.name}"} for path in decisions]
    return config


def _title(path):
    """The first heading of a page, without its number."""
    return re.sub(r"^#\s*(\d+[.:]?\s*)?", "", path.read_text().splitlines()[0]).strip()


def on_files(files, config):
    """Add what lies outside the folder of documents at the path it has in the repository, and run the gallery."""
    add = [File.generated(config, "index.md", content=_home())]
    add += [File.generated(config, name, abs_src_path=str(ROOT / name)) for name in (*PAGES, "LICENSE", "CITATION.cff")]
    add.append(File.generated(config, "assets/iframe-worker.js", abs_src_path=str(HERE / "iframe-worker.js")))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).iterdir()):
            if path.is_file():
                add.append(File.generated(config, f"{folder}/{path.name}", abs_src_path=str(path)))
    for name, content in run_gallery(ROOT / "docs" / "gallery", Path(config.site_dir).parent / "gallery").items():
        add.append(File.generated(config, f"gallery/{name}", content=content))
    return Files([*(file for file in files if file.src_uri != "index.md"), *add])


def on_page_markdown(markdown, page, **_):
    """Links that leave the folder of documents stay inside the site, where the same files are; scripts are pages."""
    if page.file.src_uri in PAGES:
        markdown = _from_within(markdown)
    markdown = re.sub(r"\]\(gallery/(\w+)\.py\)", r"](gallery/\1.md)", markdown)
    depth = page.file.src_uri.count("/")
    outside = "../" * (depth + 1)
    return re.sub(rf"\]\({re.escape(outside)}(?!\.\./)", f"]({'../' * depth}", markdown)


def _home():
    return _from_within((ROOT / "README.md").read_text())


def _from_within(text):
    """Links of a page at the root, as they are from within the documents."""
    return text.replace("](docs/adr/)", "](adr/README.md)").replace("](docs/", "](")
