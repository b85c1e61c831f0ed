"""The options of each kind of source, light enough to be looked at before anything of a source is loaded."""

from __future__ import annotations

from collections.abc import Mapping

from rollup.core.options import Known, any_text, elsewhere, flag, folder, names, settings, text, texts, whole

_ANY: Known = {"lateness": elsewhere}
_FILES: Known = {
    "path": folder,
    "glob": text,
    "max_files_per_batch": whole(1, 2**31 - 1),
    "create": flag,
    "columns": texts,
    "optional": names,
    **_ANY,
}
KINDS: Mapping[str, Known] = {
    "parquet": _FILES,
    "csv": {**_FILES, "header": flag, "separator": any_text, "null": any_text},
    "json": _FILES,
    "delta": {
        "path": folder,
        "starting_version": whole(0),
        "columns": texts,
        "optional": names,
        "max_files_per_batch": whole(1, 2**31 - 1),
        **_ANY,
    },
    "kafka": {
        "servers": text,
        "topic": text,
        "partitions": whole(1, 2**22),
        "starting_offsets": text,
        "max_events_per_batch": whole(1),
        "columns": texts,
        "optional": names,
        "slack": elsewhere,
        "options": settings,
        **_ANY,
    },
    "rate": {"rows_per_second": whole(1), "keys": whole(1), **_ANY},
}
NEEDED: Mapping[str, tuple[str, ...]] = {
    "parquet": ("path",),
    "csv": ("path",),
    "json": ("path",),
    "delta": ("path",),
    "kafka": ("servers", "topic"),
}
