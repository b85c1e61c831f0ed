"""OpenTelemetry spans of a command and of its batches, sent as OTLP over HTTP.

A batch is a trace of its own, so that none is as long as a job: the span `batch`, below it a span `commit` for each
aggregation. A command is a span when it ends. The SDK's variables (`OTEL_SERVICE_NAME`, `OTEL_EXPORTER_OTLP_HEADERS`,
`OTEL_TRACES_SAMPLER`) hold.
"""

from __future__ import annotations

from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from rollup.conf import Conf
from rollup.hosts.reporting.report import BatchReport
from rollup.program import Program

_SECONDS = 5
"""The time that one request may take, tries again included."""


class Traces:
    """The spans of one command."""

    def __init__(self, conf: Conf, program: Program, command: str) -> None:
        app = Path(conf.app).stem
        self._provider = TracerProvider(resource=Resource.create({"service.name": "rollup", "rollup.app": app}))
        self.address = conf.telemetry["traces"]
        address = f"{self.address.rstrip('/')}/v1/traces"
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(address, timeout=_SECONDS)))
        self._tracer = self._provider.get_tracer("rollup")
        self._command, self._began = command, 0.0

    def begin(self, at: float) -> None:
        """Remember when the command began."""
        self._began = at

    def end(self, at: float, problem: BaseException | None) -> None:
        """The span of the command, with what stopped it; then all that is not sent yet is."""
        span = self._tracer.start_span(self._command, start_time=_nanoseconds(self._began))
        if problem is not None:
            span.set_status(Status(StatusCode.ERROR, str(problem)))
        span.end(_nanoseconds(at))
        self._provider.shutdown()

    def batch(self, report: BatchReport) -> None:
        """The spans of a batch and of its commits, of which each ended with it."""
        said = {"stream": report.stream, "number": report.number, "events": report.events, "dead": report.dead}
        attributes = {**said, **{f"late.{kind}": events for kind, events in report.late.items()}}
        span = self._tracer.start_span(
            "batch", start_time=_nanoseconds(report.began), attributes={f"rollup.{k}": v for k, v in attributes.items()}
        )
        for name, advance in report.advances.items():
            rows = {f"rollup.rows.{level.plural}": rows.num_rows for level, rows in advance.closed.rows.items()}
            commit = self._tracer.start_span(
                "commit",
                set_span_in_context(span),
                start_time=_nanoseconds(max(report.began, report.ended - advance.commit_seconds)),
                attributes={"rollup.aggregation": name, **rows},
            )
            commit.end(_nanoseconds(report.ended))
        span.end(_nanoseconds(report.ended))


def _nanoseconds(at: float) -> int:
    return int(at * 1e9)
