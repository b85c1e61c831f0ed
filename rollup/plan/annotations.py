"""Annotations that say nothing of how events are counted: documentation, what has no effect, and what is refused.

Whatever is not acted on is refused by name. Only where another engine takes an annotation as a hint, and leaving it
out changes no answer, is it accepted with a notice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rollup.core.calendar import normal_zone
from rollup.core.errors import TimeError
from rollup.plan.app import AggregationDef, Annotation, StreamDef
from rollup.plan.types import Type

DOCUMENTATION = ("info", "description")
"""Accepted wherever an annotation may stand: they name and describe, and change nothing anywhere."""
KEY = "primarykey"
"""Of a stream: the attributes that tell the rows of the table apart that it is to SQL."""
ZONE = "zone"
"""Of a stream or an aggregation: the zone of its texts without one, and the one that cuts the buckets of every row."""
_APP = ("app:name", "app:description", "app:playback")
"""`@app:playback` says that time is that of events, as it is here; only arrivals have another."""
_ELSEWHERE: Mapping[str, str] = {
    "source": "[sources.{name}] of the configuration says where its events come from; leave @{annotation} out",
    "sink": "[sinks.{name}] of the configuration says where its events go; leave @{annotation} out",
    "store": "[store] of the configuration, or @store of an aggregation, says where tables go",
}
HINTS: Mapping[str, str] = {
    "index": "its tables are sorted by time and keys",
}
"""Annotations of an aggregation that change nothing but speed elsewhere: accepted, with a notice that says why."""


def check_app(annotations: Sequence[Annotation], aggregations: Iterable[AggregationDef]) -> None:
    """Raise PlanError for an annotation of the whole app that is not acted on."""
    arriving = [definition.name for definition in aggregations if definition.by is None]
    for annotation in annotations:
        if annotation.name not in _APP:
            raise annotation.refuse(f"@{annotation.name} is not acted on", f"known: @{', @'.join(_APP)}")
        if [each.name for each in annotations].count(annotation.name) > 1:
            raise annotation.refuse(f"the app has two @{annotation.name}", "leave one of them out")
        if annotation.name == "app:name":
            one_value(annotation)
        if annotation.name == "app:playback" and annotation.values:
            what = " and ".join(annotation.values)
            raise annotation.refuse(f"{what} of @app:playback is not acted on", "time goes on with events alone")
        if annotation.name == "app:playback" and arriving:
            raise annotation.refuse(f"{arriving[0]} goes by arrival, which is not played back", "aggregate by a time")


def check_stream(name: str, annotations: Iterable[Annotation]) -> None:
    """Raise PlanError for an annotation of a stream that is not acted on."""
    for annotation in annotations:
        word = annotation.name.lower()
        if word in _ELSEWHERE:
            cure = _ELSEWHERE[word].format(name=name, annotation=annotation.name)
            raise annotation.refuse(f"@{annotation.name} of stream {name} is not acted on", cure)
        if word not in ("time", KEY, ZONE, *DOCUMENTATION):
            raise annotation.refuse(
                f"@{annotation.name} of stream {name} is not acted on",
                "known of a stream: @time, @zone, @PrimaryKey, @info, @description",
            )


def primary_key(name: str, attributes: Collection[str], annotations: Iterable[Annotation]) -> tuple[str, ...] | None:
    """The attributes that `@PrimaryKey` of a stream names, None without it. Raises PlanError for what is none."""
    found = [annotation for annotation in annotations if annotation.name.lower() == KEY]
    if not found:
        return None
    if len(found) > 1:
        raise found[1].refuse(f"{name} has two @PrimaryKey", "@PrimaryKey('a', 'b')")
    given, attributes = found[0], tuple(attributes)
    wrong = next((each for each in given.listed if each not in attributes), None)
    if wrong is not None or not given.listed or len(given.listed) < len(given.values):
        said = f"@PrimaryKey names {wrong!r}, which {name} has not" if wrong else "@PrimaryKey lists attributes"
        raise given.refuse(said, f"as @PrimaryKey('{attributes[0]}'); {name} has {', '.join(attributes)}")
    return given.listed


def one_value(annotation: Annotation) -> str:
    """The value of an annotation that has one and nothing else. Raises PlanError."""
    if list(annotation.values) != [""] or annotation.nested:
        raise annotation.refuse(f"@{annotation.name} takes one value", f"e.g. @{annotation.name}('…'), without a name")
    return annotation.values[""]


def declared_zone(annotation: Annotation) -> str:
    """The zone that an `@zone` names, in its one spelling. Raises PlanError for what is none."""
    try:
        return normal_zone(one_value(annotation))
    except TimeError as problem:
        raise annotation.refuse(f"@{annotation.name}: {problem.message}", problem.hint) from None


def stream_zone(name: str, annotations: Iterable[Annotation]) -> str | None:
    """The zone that a stream declares, None where it declares none. Raises PlanError for two, and for what is none."""
    found = [annotation for annotation in annotations if annotation.name.lower() == ZONE]
    if len(found) > 1:
        raise found[1].refuse(f"{name} has two @zone", "leave one of them out")
    return declared_zone(found[0]) if found else None


def stream_time(stream: StreamDef) -> str | None:
    """The attribute that `@time` says is the time of a stream's events. Raises PlanError where it can be none."""
    found = None
    for annotation in stream.annotations:
        if annotation.name.lower() == "time":
            found = one_value(annotation)
            fitting = [name for name, kind in stream.attributes.items() if kind in (Type.LONG, Type.STRING)]
            if found not in fitting:
                what = f"@time names {found!r}, which is no long or string of {stream.name}"
                raise annotation.refuse(what, f"one of {', '.join(fitting)}")
    return found


def check_query(annotations: Iterable[Annotation]) -> None:
    """Raise PlanError for an annotation of a query that is not acted on."""
    for annotation in annotations:
        if annotation.name.lower() not in DOCUMENTATION:
            raise annotation.refuse(
                f"@{annotation.name} of a query is not acted on", "known of a query: @info, @description"
            )


def notices(definition: AggregationDef) -> list[str]:
    """What to say of the annotations of an aggregation that have no effect."""
    return [
        f"line {each.line}, column {each.column}: @{each.name} of {definition.name} has no effect: {why}"
        for each in definition.annotations
        if (why := HINTS.get(each.name.lower())) is not None
    ]
