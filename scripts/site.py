"""A hook of MkDocs: the README is the first page; code gives the pages of commands, Python and metrics."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
_FOLDER = re.compile(r"\]\((docs/[\w/-]+/)\)")
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?!https?:|#|docs/|[\w-]+\.md)([^)]+)\)")
_QUOTED = re.compile(r"""(: |-> )(['"])(.*?)\2(?=[,)]| = |$)""")
_INFO = re.compile(r"^```(\w+) (?:title=(\S+)|.*)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def readme() -> str:
    """The README, with links as from within `docs`."""
    text = _FOLDER.sub(r"](\1README.md)", (ROOT / "README.md").read_text())
    return _OUTSIDE.sub(r"\1", text.replace("](docs/", "]("))


def commands() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    from typer import Context
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from rollup.cli.main import cli

    command = get_command(cli)
    text = get_docs_for_click(obj=command, ctx=Context(command), name="rollup")
    return text.replace("# `rollup`\n", "# Commands\n", 1)


def metrics() -> str:
    """The metrics of a job, with their labels."""
    from rollup.hosts.reporting.progress import Metrics

    rows = [
        f"| `{metric._name}` | {metric._type} | {', '.join(metric._labelnames)} | {metric._documentation} |"
        for metric in vars(Metrics()).values()
        if hasattr(metric, "_labelnames")
    ]
    head = "# Metrics\n\nWith `[metrics] port` a job shows these to Prometheus. There a counter ends with `_total`.\n"
    return "\n".join([head, "| Metric | Kind | Labels | Meaning |", "|---|---|---|---|", *rows]) + "\n"


def described(name: str, found: Any, mark: str) -> Iterator[str]:
    """A heading with the signature of an object, its docstring, and those of its public methods."""
    yield f"{mark} {name}"
    if callable(found):
        signature = _QUOTED.sub(r"\1\3", str(inspect.signature(found)))
        yield f"```python\n{name}{signature}\n```"
    yield _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", inspect.getdoc(found) or "")
    for each, method in vars(found).items() if isinstance(found, type) else ():
        if not each.startswith("_") and (inspect.isfunction(method) or isinstance(method, classmethod)):
            yield from described(f"{name}.{each}", getattr(found, each), mark + "#")


def python() -> str:
    """What `import rollup` gives."""
    import rollup

    names = [name for name in rollup.__all__ if not name.startswith("_")]
    return "\n\n".join(["# Python", *(text for name in names for text in described(name, getattr(rollup, name), "##"))])


PAGES: dict[str, Callable[[], str]] = {
    "index.md": readme, "commands.md": commands, "python.md": python, "metrics.md": metrics
}  # fmt: skip


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of something else."""
    for name, text in PAGES.items():
        files.append(File.generated(config, name, content=text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to the README lead to the first page, those to files beside the pages are text.

    What tests read behind the language of a block goes, since MkDocs would take it for none, and a title gets quotes.
    """
    depth = page.file.src_uri.count("/")
    text = markdown.replace("](" + "../" * (depth + 1) + "README.md", "](" + "../" * depth + "index.md")
    text = _INFO.sub(lambda fence: f"```{fence[1]}" + (f' title="{fence[2]}"' if fence[2] else ""), text)
    return re.sub(r"\[([^\]]+)\]\((?:\.\./){" + str(depth + 1) + r"}[^)]+\)", r"\1", text)
