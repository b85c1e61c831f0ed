"""Annotations of statements: the known ones and their values; what a hint says."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from rollup.lang.epl.catalog import problem, unknown
from rollup.lang.epl.tree.streams import Annotation

_TEXT = ("name", "description", "hint", "audit", "tag", "priority")
_KNOWN = {
    *_TEXT, "buseventtype", "drop", "eventrepresentation", "hook", "iterableunbound", "nolock", "private", "protected",
    "public", "jsonschema", "jsonschemafield", "xmlschema", "avroschemafield",
}  # fmt: skip
_VALUED = {"name": str, "description": str, "hint": str, "priority": int}
_HINTS = {
    "iterate_only", "disable_reclaim_group", "reclaim_group_aged", "reclaim_group_freq", "set_noindex", "index",
    "enable_window_subquery_indexshare", "disable_window_subquery_indexshare", "force_nested_iter", "prefer_merge_join",
    "exclude_plan", "disable_unique_implicit_idx", "max_filter_width", "filterindex", "disable_whereexpr_moveto_filter",
    "enable_outputlimit_opt", "disable_outputlimit_opt", "silent_delete",
}  # fmt: skip


def check_annotations(annotations: Sequence[Annotation], indexes: Collection[str]) -> None:
    """Raise PlanError for an annotation that is not known, one without its value, and hints that say nothing."""
    for annotation in annotations:
        name = annotation.word
        if name not in _KNOWN:
            raise unknown("annotation", annotation.name, [*_TEXT, "public", "private"], annotation)
        value: Any = annotation.value
        wanted = _VALUED.get(name)
        if wanted is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
            what = "a text" if wanted is str else "a whole number"
            raise problem(f"@{annotation.name} needs {what}", annotation, f"@{name.title()}({_example(wanted)})")
        if name == "hint":
            _check_hint(str(value), annotation, indexes)


def priority_of(annotations: Sequence[Annotation]) -> int:
    """What `@Priority` says; without it 0."""
    found = [each.value for each in annotations if each.word == "priority"]
    return next((int(value) for value in found if isinstance(value, int)), 0)


def _example(wanted: type) -> str:
    return "'…'" if wanted is str else "1"


def _check_hint(text: str, annotation: Annotation, indexes: Collection[str]) -> None:
    """Hints are separated by commas outside of parentheses, each with or without a value."""
    for part in re.split(r",(?![^(]*\))", text):
        word = re.split(r"[=(]", part.strip(), maxsplit=1)[0].strip().lower()
        if word and word not in _HINTS:
            raise unknown("hint", word, _HINTS, annotation)
        timed = re.fullmatch(r"\s*(reclaim_group_\w+)\s*=\s*(.*?)\s*", part, re.IGNORECASE)
        if timed and not re.fullmatch(r"\d+(\.\d*)?|[A-Za-z_]\w*", timed[2]):
            raise problem(f"`{timed[2]}` is no number of seconds", annotation, "reclaim_group_aged=10")
    for found in re.findall(r"index\(([^)]*)\)", text):
        names = [name.strip() for name in found.split(",")]
        lost = [name for name in names if name != "bust" and name not in indexes]
        if "bust" in names and lost:
            raise unknown("index", lost[0], indexes, annotation)
