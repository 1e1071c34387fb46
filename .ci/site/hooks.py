"""Hooks of MkDocs: the pages come from the repository, under the paths that they have there."""

import os
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")

# Folders that a page links to, which have no page of their own.
folders = set()


def on_config(config):
    pom = (ROOT / "pom.xml").read_text()
    config.extra["version"] = re.search(r"^  <version>(.*)</version>$", pom, re.MULTILINE).group(1)
    return config


def on_files(files, config):
    docs = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*")) if path.is_file()]
    paths = PAGES + docs
    for path in list(paths):
        if path.endswith(".md"):
            paths += linked(path, set(paths))
    for path in paths:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    for folder in sorted(folders):
        names = sorted(name for name in os.listdir(ROOT / folder) if (ROOT / folder / name).is_file())
        lines = [f"- [{name}]({name})" for name in names]
        files.append(File.generated(config, f"{folder}/README.md", content="\n".join([f"# {folder}", "", *lines])))
        for name in names:
            if f"{folder}/{name}" not in paths:
                files.append(File.generated(config, f"{folder}/{name}", abs_src_path=str(ROOT / folder / name)))
    javadoc = os.environ["NCCL4J_JAVADOC"]
    files.append(File.generated(config, "api/index.html", abs_src_path=f"{javadoc}/index.html"))
    return files


def linked(page, known):
    """The files outside of docs to which a page links."""
    found = []
    for match in LINK.finditer((ROOT / page).read_text()):
        target = (ROOT / page).parent.joinpath(match.group(1)).resolve()
        path = target.relative_to(ROOT).as_posix()
        if target.is_dir():
            folders.add(path)
        elif target.is_file() and path not in known:
            known.add(path)
            found.append(path)
    return found


def on_page_markdown(markdown, page, config, files):
    def folder_page(match):
        target = os.path.normpath(os.path.join(os.path.dirname(page.file.src_uri), match.group(1)))
        return f"]({match.group(1)}/README.md)" if target in folders else match.group(0)

    return LINK.sub(folder_page, markdown)
