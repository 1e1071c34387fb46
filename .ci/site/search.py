"""Hooks of MkDocs: the search also finds the classes and methods of the Javadoc, and by the names that PyTorch and NCCL use."""

import json
import logging
import os
import re
from pathlib import Path

# Names of PyTorch, torchrun users and NCCL, for the member or class that does the same.
SYNONYMS = {
    "Communicator.allGather": ["all_gather"],
    "Communicator.allReduce": ["all_reduce"],
    "Communicator.allToAll": ["all_to_all"],
    "Communicator.allToAllv": ["all_to_all_single"],
    "Communicator.reduceScatter": ["reduce_scatter"],
    "Communicator.split": ["new_group"],
    "Communicator.fromEnvironment": ["init_process_group"],
    "DistributedDataParallel": ["DDP"],
    "Group": ["batch_isend_irecv"],
}

# Each of these must be a word of some page: the separator must split what is around it, and not the word itself.
WORDS = ["DDP", "allReduce", "all_reduce", "all_to_all_single", "NCCL_SOCKET_IFNAME", "2.18"]

# The members of generated packages are the C functions and fields: their classes suffice.
GENERATED = {"io.github.nccl4j.nccl", "io.github.nccl4j.nccl_device"}

log = logging.getLogger("mkdocs.search")


def entries(javadoc, name):
    """The array of a file of Javadoc's own search."""
    text = (javadoc / f"{name}-search-index.js").read_text()
    return json.loads(text[text.index("[") : text.rindex("]") + 1])


def page(entry, type_name):
    module = f"{entry['m']}/" if "m" in entry else ""
    return f"{module}{entry['p'].replace('.', '/')}/{type_name}.html"


def documents(javadoc):
    """A document for each class, and for each name of its methods and constants."""
    found = {}
    for entry in entries(javadoc, "type"):
        if "p" in entry:
            path = page(entry, entry["l"])
            found[path] = {"location": f"api/{path}", "title": entry["l"], "text": f"Javadoc, {entry['p']}"}
    members = {}
    for entry in entries(javadoc, "member"):
        name = entry["l"].partition("(")[0]
        if entry["p"] not in GENERATED and name != entry["c"].rpartition(".")[2]:
            path = page(entry, entry["c"])
            text = f"Javadoc, {entry['p']}.{entry['c']}"
            location = f"api/{path}#{entry.get('u', entry['l'])}"
            # The first one of several overloads.
            members.setdefault((path, name), {"location": location, "title": name, "text": text})
    for path in sorted({path for path, name in members} | set(found)):
        if not (javadoc / path).is_file():
            log.warning(f"the Javadoc has no {path}")
    named = {document["title"]: document for document in found.values()}
    named |= {f"{Path(path).stem}.{name}": document for (path, name), document in members.items()}
    for name, words in SYNONYMS.items():
        if name in named:
            named[name]["tags"] = words
        else:
            log.warning(f"the Javadoc has no {name}, for which the search has the synonyms {words}")
    # A class comes before its members, since the search takes the first document of a page as the page.
    return [*found.values(), *members.values()]


def on_post_build(config):
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text())
    separator = re.compile(index["config"]["separator"])
    words = set()
    for document in index["docs"]:
        words.update(separator.split(re.sub(r"<[^>]*>", "", document["text"])))
    for word in WORDS:
        if word not in words:
            log.warning(f"the search must find {word} on a page: is it between separators?")
    index["docs"] += documents(Path(os.environ["NCCL4J_JAVADOC"]))
    path.write_text(json.dumps(index, separators=(",", ":")))
