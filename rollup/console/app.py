"""The console as a web application: routes to pages and to the data that charts draw."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import anyio
import jinja2
import pyarrow as pa
import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rollup import ask
from rollup.ask import Asker
from rollup.conf import Conf
from rollup.console import explorer, overview
from rollup.console.guard import Guard
from rollup.core.calendar import to_local
from rollup.core.copies import place as copies
from rollup.core.errors import ConfigError, QueryError, RollupError
from rollup.core.json_line import json_line
from rollup.core.objects import ObjectPath
from rollup.gateway.servers.options import ServeOptions
from rollup.grants import Grant
from rollup.hosts.reporting.dead_records import reasons, shown
from rollup.hosts.reporting.late_events import age
from rollup.lifecycle.completeness import remarks
from rollup.plan.aggregation import TIMESTAMP
from rollup.retrieval.merging import keys_shown
from rollup.stores.dead_letters import DeadLetters

Found = TypeVar("Found")
_HERE = Path(__file__).parent
_log = structlog.get_logger()
_MOST_ROWS, _MOST_TEXT, _MOST_LETTERS = 10_000, 100_000, 500
_SHOWN_ROWS = 1_000
_VISITOR: ContextVar[str | None] = ContextVar("VISITOR", default=None)
"""The user whose request is being answered."""
_OF_ALL = ("/a/", "/s", "/dead", "/api/status")
"""Pages about the whole app, which nobody sees who may read a part of it."""


class Console:
    """The pages of one configuration. `workers` questions are answered at a time, each for at most `seconds`."""

    def __init__(self, conf: Conf, guard: Guard, workers: int = 4, seconds: float = 60) -> None:
        self.conf, self.guard, self._seconds = conf, guard, seconds
        self.ended = False
        self._askers: tuple[Asker, Mapping[str, Grant | None], dict[Grant | None, Asker]] | None = None
        self._limiter = anyio.CapacityLimiter(workers)
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self._templates.filters |= {
            "time": self._time,
            "age": _age,
            "cell": _cell,
            "path": _path,
        }

    def application(self) -> Starlette:
        """The application, for a server of the ASGI kind."""
        pages = {
            "/": self._overview,
            "/explore": self._first,
            "/explore/{name}": self._explore,
            "/a/{name}": self._aggregation,
            "/s": self._statements,
            "/ask": self._ask,
            "/dead": self._dead,
            "/export/{name}": self._export,
            "/answer": self._download,
            "/api/series/{name}": self._series,
            "/api/query": self._query,
            "/api/aggregations": self._names,
            "/api/status": self._status,
            "/api/changes": self._changes,
        }
        routes: list[Any] = [Route(path, self._guarded(page)) for path, page in pages.items()]
        routes += [
            Route("/login", self._login, methods=["GET", "POST"]),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        missing = {404: self._nowhere}
        return Starlette(routes=routes, middleware=self.guard.middleware(), exception_handlers=missing)  # type: ignore[arg-type]

    def check(self) -> None:
        """Read the app. Raises a RollupError where it is wrong, before anybody asks."""
        assert self.asker

    @property
    def asker(self) -> Asker:
        """What answers the user who asks, for SiddhiQL and SQL; made anew when a file of the configuration changes.

        Its SQL reads the tables and no other file: who may ask here need not be who may read this machine.
        """
        found = ask.opened(self.conf.path)
        if self._askers is None or self._askers[0] is not found:
            options = None if self.guard.local else ServeOptions.of(found.conf, passwords=False)
            grants = {} if options is None else options.grants(found.conf, found.program, found.tables)
            self._askers = found, grants, {}
        _, grants, askers = self._askers
        user = _VISITOR.get()
        if user is not None and user not in grants:
            raise ConfigError(f"{user} may not log in any more")
        grant = None if user is None else grants[user]
        own = askers.get(grant)
        if own is None:
            own = Asker(found.conf, found.program, grant)
            tables = found.conf.tables
            places = (copies(),) if isinstance(tables, ObjectPath) else (tables, tables.resolve())
            own.engine.confine(sorted(set(map(str, places))))
            askers[grant] = own
        return own

    async def _work(self, work: Callable[[Asker], Found]) -> Found:
        """What a question gives, from a thread. Raises QueryError when it takes too long."""
        try:
            async with asyncio.timeout(self._seconds):
                return await anyio.to_thread.run_sync(
                    lambda: work(self.asker), limiter=self._limiter, abandon_on_cancel=True
                )
        except TimeoutError:
            raise QueryError(f"there is no answer after {self._seconds:g} s", hint="ask for less") from None

    def _guarded(self, page: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """A page for those who may see it; a refusal is a page, or JSON, with the sentence."""

        async def answer(request: Request) -> Response:
            data = request.url.path.startswith("/api/")
            if not self.guard.known(request):
                if data:
                    return JSONResponse({"error": "log in first"}, 401)
                here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
                return RedirectResponse(f"/login?{urlencode({'to': here})}", 303)
            _VISITOR.set(self.guard.user(request))
            try:
                grant = self.asker.grant
                if grant is not None and request.url.path == "/":
                    return RedirectResponse("/explore", 303)
                if grant is not None and request.url.path.startswith(_OF_ALL):
                    raise QueryError("this page is about the whole app", hint=f"you may read {', '.join(grant.reads)}")
                return await page(request)
            except RollupError as problem:
                said = {"error": problem.message, "hint": problem.hint, "line": problem.line, "column": problem.column}
                return JSONResponse(said, 400) if data else self._page("problem.html", request, 400, problem=problem)

        return answer

    def _page(self, template: str, request: Request, status: int = 200, **values: Any) -> HTMLResponse:
        """A page made of a template."""
        _VISITOR.set(self.guard.user(request))
        common = {
            "here": request.url.path,
            "names": list(self.asker.program.aggregations) if status != 401 else [],
            "limited": status == 401 or self.asker.grant is not None,
            "conf": str(self.conf.path),
            "zone": self.asker.zone,
            "user": self.guard.user(request),
        }
        return HTMLResponse(self._templates.get_template(template).render(**common, **values), status)

    async def _nowhere(self, request: Request, _: Exception) -> Response:
        problem = QueryError(f"there is no page {request.url.path}", hint="the links above lead to all pages")
        if not self.guard.known(request) or request.url.path.startswith(("/api/", "/static/")):
            return JSONResponse({"error": problem.message}, 404)
        return self._page("problem.html", request, 404, problem=problem)

    async def _login(self, request: Request) -> Response:
        to = request.query_params.get("to", "/")
        to = to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/"
        if request.method == "POST":
            form = await request.form(max_files=0, max_fields=4)
            if await self.guard.login(request, str(form.get("user", "")), str(form.get("password", ""))):
                return RedirectResponse(to, 303)
        failed = request.method == "POST"
        return self._page("login.html", request, 401 if failed else 200, failed=failed, to=urlencode({"to": to}))

    async def _overview(self, request: Request) -> Response:
        rows, flow = await self._work(lambda asker: (overview.rows(asker), overview.flow(asker)))
        return self._page("overview.html", request, rows=rows, flow=flow, now=time.time())

    async def _first(self, request: Request) -> Response:
        names = list(self.asker.program.aggregations)
        if not names:
            raise QueryError("the app has no aggregation to explore")
        return RedirectResponse(f"/explore/{quote(names[0], '')}", 303)

    async def _drawn(self, request: Request) -> explorer.Chart:
        name, given = request.path_params["name"], dict(request.query_params)
        return await self._work(lambda asker: explorer.chart(asker, explorer.View.of(asker, name, given)))

    async def _explore(self, request: Request) -> Response:
        chart = await self._drawn(request)
        view = chart.view
        return self._page(
            "explore.html", request, chart=chart, view=view, data=_script(chart.plain()),
            keys=list(keys_shown(view.aggregation)), measures=explorer.measures_of(view.aggregation),
            before=explorer.BEFORE, where=dict(view.where), given=request.query_params,
            table=chart.table().slice(0, _SHOWN_ROWS), path=str(self.conf.path), pinned=view.per is not None,
        )  # fmt: skip

    async def _series(self, request: Request) -> Response:
        return JSONResponse((await self._drawn(request)).plain())

    async def _export(self, request: Request) -> Response:
        return _file((await self._drawn(request)).table(), request)

    async def _download(self, request: Request) -> Response:
        """The rows of an answer as a file, with the times that its page shows."""
        answer, _, _ = await self._answer(request)
        return _file(_in_zone(answer, self.asker.zone), request)

    async def _aggregation(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.asker.program.aggregations:
            raise QueryError(f"there is no aggregation {name!r}", hint=", ".join(self.asker.program.aggregations))
        row = await self._work(lambda asker: overview.row(asker, name))
        text = self.asker.conf.app.read_text(encoding="utf-8", errors="replace")
        return self._page(
            "aggregation.html", request, row=row, aggregation=self.asker.program.aggregations[name], text=text
        )

    async def _statements(self, request: Request) -> Response:
        def work(asker: Asker) -> Any:
            found = overview.statements(asker)
            tables = dict[str, pa.Table | str]()
            for name in (name for each in found for name in each.kept):
                try:
                    tables[name] = asker.kept.rows(name, asker.kept.newest()).slice(0, 20)
                except RollupError as problem:
                    tables[name] = str(problem)
            return found, tables, overview.flow(asker)

        found, tables, flow = await self._work(work)
        return self._page("statements.html", request, found=found, tables=tables, flow=flow)

    async def _answer(self, request: Request) -> tuple[pa.Table, list[str], float]:
        """The answer to the question of an address, what is to be said of it, and how long it took, ms."""
        text = request.query_params.get("q", "")
        if len(text) > _MOST_TEXT:
            raise QueryError(f"a question of {len(text):,} characters", hint=f"at most {_MOST_TEXT:,}")

        def work(asker: Asker) -> tuple[pa.Table, list[str], float]:
            begun = time.perf_counter()
            answer = asker.query(text)
            taken = (time.perf_counter() - begun) * 1000
            said = remarks(asker, text, answer)
            if answer.num_rows > _MOST_ROWS:
                said.append(f"the first {_MOST_ROWS:,} of {answer.num_rows:,} rows; `rollup query` prints all")
            return answer.slice(0, _MOST_ROWS), said, taken

        return await self._work(work)

    async def _ask(self, request: Request) -> Response:
        answer, said, taken, problem = None, list[str](), 0.0, None
        text = request.query_params.get("q", "")
        if text:
            try:
                answer, said, taken = await self._answer(request)
            except RollupError as found:
                problem = found
        if answer is not None:
            answer = _in_zone(answer, self.asker.zone)
        known = _known(self.asker)
        return self._page(
            "ask.html", request, 400 if problem else 200, text=text, answer=answer, said=said, taken=taken, problem=problem,
            known=known, names_known=_script(known), pointer=_pointer(text, problem), most=_SHOWN_ROWS,
            questions=self.asker.conf.questions if self.asker.grant is None else {},
            explained=answer is not None and {"reads", "files_skipped"} <= set(answer.schema.names),
        )  # fmt: skip

    async def _query(self, request: Request) -> Response:
        answer, said, taken = await self._answer(request)
        lines = ",".join(map(json_line, answer.to_pylist()))
        head = json.dumps({"columns": answer.schema.names, "said": said, "ms": round(taken, 1)})
        return Response(f'{head[:-1]}, "rows": [{lines}]}}', media_type="application/json")

    async def _dead(self, request: Request) -> Response:
        stream, reason = request.query_params.get("stream", ""), request.query_params.get("reason", "")

        def work(asker: Asker) -> Any:
            rows = DeadLetters(asker.conf.tables).read().to_pylist()
            asked = [row for row in rows if stream in ("", row["stream"]) and reason in ("", row["reason"])]
            return reasons(rows), asked[:_MOST_LETTERS], len(asked)

        groups, rows, count = await self._work(work)
        return self._page(
            "dead.html", request, groups=groups, rows=rows, count=count, shown=shown, asked=(stream, reason)
        )

    async def _names(self, request: Request) -> Response:
        found = self.asker.program.aggregations
        return JSONResponse({name: {"levels": [level.plural for level in each.levels], "keys": list(keys_shown(each)),
                                    "columns": {o.name: o.type for o in each.outputs}, "zone": each.zone}
                             for name, each in found.items()})  # fmt: skip

    async def _status(self, request: Request) -> Response:
        rows = await self._work(overview.rows)
        return JSONResponse([
            {"aggregation": row.name, "status": None if row.status is None else row.status.plain(),
             "alerts": [vars(alert) for alert in row.alerts]}
            for row in rows
        ])  # fmt: skip

    async def _changes(self, request: Request) -> Response:
        """The numbers of new commits, as server-sent events; the first says the newest."""

        async def numbers() -> AsyncIterator[str]:
            told: Mapping[str, int] = {}
            while not self.ended and not await request.is_disconnected():
                found = await self._work(_commits)
                if found != told:
                    told = found
                    yield f"data: {json.dumps(told)}\n\n"
                else:
                    yield ": nothing new\n\n"
                await asyncio.sleep(1)

        return StreamingResponse(numbers(), media_type="text/event-stream")

    def _time(self, instant: int | None, zone: str | None = None) -> str:
        return "·" if instant is None else f"{to_local(instant, zone or self.asker.zone):%Y-%m-%d %H:%M:%S}"


def _commits(asker: Asker) -> dict[str, int]:
    """The newest commit of each aggregation; 0 where it cannot be told."""
    found = dict[str, int]()
    for name in asker.program.aggregations:
        try:
            found[name] = asker.snapshot(name).number
        except RollupError:
            found[name] = 0
    return found


def _known(asker: Asker) -> dict[str, dict[str, list[str]]]:
    """What may be asked, with the columns and levels of each."""
    found = {
        name: {
            "columns": list(dict.fromkeys([*keys_shown(each), *(output.name for output in each.outputs)])),
            "levels": [level.plural for level in each.levels],
        }
        for name, each in asker.program.aggregations.items()
    }
    return found | {name: {"columns": _columns(asker, name), "levels": []} for name in asker.tables}


def _columns(asker: Asker, table: str) -> list[str]:
    """Those of a table beside aggregations; none of one that cannot be read, which a question to it says."""
    try:
        return list(asker.tables[table].attributes)
    except RollupError:
        return []


def _in_zone(table: pa.Table, zone: str) -> pa.Table:
    """An answer whose instants are times of a zone, as on the command line."""
    for place, field in enumerate(table.schema):
        instant = pa.types.is_timestamp(field.type) and field.type.tz
        if instant or (field.name == TIMESTAMP and pa.types.is_int64(field.type)):
            unit = field.type.unit if instant else "ms"
            table = table.set_column(place, field.name, table.column(place).cast(pa.timestamp(unit, tz=zone)))
    return table


def _file(table: pa.Table, request: Request) -> Response:
    """A table in the format that an address names. Raises QueryError for another."""
    form = request.query_params.get("format", "csv")
    if form not in ("csv", "parquet"):
        raise QueryError(f"there is no export as {form!r}", hint="csv or parquet")
    data = _csv(table) if form == "csv" else _parquet(table)
    kind = "text/csv; charset=utf-8" if form == "csv" else "application/vnd.apache.parquet"
    return Response(data, media_type=kind, headers={"Content-Disposition": f'attachment; filename="answer.{form}"'})


def _script(data: Any) -> str:
    """Data for a script element: text that ends no element."""
    return json.dumps(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _csv(table: pa.Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(map(_harmless, table.schema.names))
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow([_harmless(value.isoformat() if hasattr(value, "isoformat") else value) for value in row])
    return out.getvalue()


def _harmless(value: Any) -> Any:
    """A text that a spreadsheet takes for no formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _pointer(text: str, problem: RollupError | None) -> str:
    """The line of a question that is refused with a sign under the place; empty without a place."""
    if problem is None or problem.line is None or problem.column is None:
        return ""
    lines = text.splitlines() or [""]
    line = lines[min(problem.line, len(lines)) - 1]
    return f"{line}\n{' ' * (problem.column - 1)}^"


def _path(text: str) -> str:
    """A text as one step of a path, or a value, of an address."""
    return quote(text, "")


def _age(seconds: float | None) -> str:
    return "·" if seconds is None else age(seconds)


def _cell(value: Any) -> str:
    if value is None:
        return "·"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.2f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:%Y-%m-%d %H:%M:%S}" if hasattr(value, "strftime") else str(value)
