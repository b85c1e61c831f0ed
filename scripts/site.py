"""A hook of MkDocs: the README is the site's first page, and links between the two lead to pages of the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
_FOLDER = re.compile(r"\]\((docs/[\w/-]+/)\)")
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?!https?:|#|docs/|[\w-]+\.md)([^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the README as `index.md`."""
    text = _FOLDER.sub(r"](\1README.md)", (ROOT / "README.md").read_text())
    text = _OUTSIDE.sub(r"\1", text.replace("](docs/", "]("))
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to the README lead to the first page, those to files beside the pages are text."""
    depth = page.file.src_uri.count("/")
    text = markdown.replace("](" + "../" * (depth + 1) + "README.md", "](" + "../" * depth + "index.md")
    return re.sub(r"\[([^\]]+)\]\((?:\.\./){" + str(depth + 1) + r"}[^)]+\)", r"\1", text)
