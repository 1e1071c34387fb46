"""Hooks of MkDocs: the pages come from the repository, under the paths that they have there."""

import logging
import os
import re
from html.parser import HTMLParser
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")
BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
ID = re.compile(r"^### (NCCL4J-\d{4}): .*$", re.MULTILINE)

# --strict makes a warning of this logger a failure.
log = logging.getLogger("mkdocs.hooks")

# Folders that a page links to, which have no page of their own.
folders = set()


class Committed(File):
    """A file of the repository, which has a link to its source there."""

    @property
    def edit_uri(self):
        return self.src_uri


def on_config(config):
    pom = (ROOT / "pom.xml").read_text()
    config.extra["version"] = re.search(r"^  <version>(.*)</version>$", pom, re.MULTILINE).group(1)
    home = re.search(r"<nccl4j.home>(.*)</nccl4j.home>", pom).group(1)
    # UNDECIDED until the owner chooses a home: then the pages have no links to it.
    if home.startswith("https://"):
        config.repo_url = home
        config.repo_name = "/".join(home.split("/")[3:])
        config.edit_uri = "edit/main/"
    return config


def on_files(files, config):
    docs = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*")) if path.is_file()]
    paths = PAGES + docs
    for path in list(paths):
        if path.endswith(".md"):
            paths += linked(path, set(paths))
    for path in paths:
        files.append(Committed.generated(config, path, abs_src_path=str(ROOT / path)))
    for folder in sorted(folders):
        names = sorted(name for name in os.listdir(ROOT / folder) if (ROOT / folder / name).is_file())
        lines = [f"- [{name}]({name})" for name in names]
        # The search finds the pages that link to them.
        content = ["---", "search: {exclude: true}", "---", f"# {folder}", "", *lines]
        files.append(File.generated(config, f"{folder}/README.md", content="\n".join(content)))
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

    # The anchor of an id is the id alone, so that it needs no knowledge of the finding's name.
    markdown = ID.sub(lambda heading: f"{heading.group(0)} {{ #{heading.group(1).lower()} }}", markdown)
    return LINK.sub(folder_page, markdown)


class Headings(HTMLParser):
    """The texts of the H1 of a page, and those of its table of contents."""

    def __init__(self, html):
        super().__init__()
        self.titles = []
        self.contents = []
        self.texts = None
        # One entry for each open nav: nested sections are a nav in the contents.
        self.navs = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag == "nav":
            self.navs.append("md-nav--secondary" in (dict(attributes).get("class") or ""))
        texts = self.titles if tag == "h1" else self.contents if tag == "a" and any(self.navs) else None
        if texts is not None:
            texts.append("")
            self.texts = texts

    def handle_endtag(self, tag):
        if tag == "nav":
            self.navs.pop()
        elif tag in ("h1", "a"):
            self.texts = None

    def handle_data(self, data):
        if self.texts is not None:
            self.texts[-1] += data


def on_post_page(output, page, config):
    """A line that begins with # by accident is a second title, and takes the sections below it out of the contents."""
    headings = Headings(output)
    titles = [title.rstrip("¶") for title in headings.titles]
    if len(titles) != 1:
        log.warning(f"{page.file.src_uri} must have one H1: {titles}")
    contents = [" ".join(text.split()) for text in headings.contents]
    sections = [section.replace("`", "").strip() for section in SECTION.findall(BLOCK.sub("", page.markdown))]
    missing = [section for section in sections if section not in contents]
    if missing:
        log.warning(f"the contents of {page.file.src_uri} must have every section; missing: {missing}")
    return output
