"""Random EPL statements over two streams: whatever may stand together, in shares that meet most pairs of features soon."""

from __future__ import annotations

from collections.abc import Sequence

from tests.live.comparing.words import Words

STREAMS = """
create schema S(symbol string, price double, volume int, big long, flag boolean, ts long);
create schema R(volume int, price double, symbol string, flag boolean, big long, ts long);
create schema U(symbol string, a double, n int);
"""
CONTEXTS = {
    "Symbols": "partition by symbol from S",
    "Pairs": "partition by symbol, volume from S(price > 20)",
    "Shared": "partition by symbol from S, symbol from R",
    "Bands": "group by price < 40 as low, group by price >= 20 as high, group by volume > 2 as much from S(volume >= 0)",
    "Hashes": "coalesce by consistent_hash_crc32(symbol) from S granularity 2",
    "Ahead": "coalesce by hash_code(volume) from S(price > 1) granularity 3 preallocate",
    "Nested": "context A partition by symbol from S(volume >= 0), context B group by price < 40 as low, group by volume > 1 "
    "as much from S(price > 1)",
    "Mixed": "context A coalesce by hash_code(volume) from S granularity 2, context B partition by symbol, volume from S",
    "Turns": "start @now end after 25 msec",
    "Later": "start S(price > 50) as s end S(symbol = s.symbol, volume > 1)",
    "Many": "initiated by S(price > 50) as s terminated after 40 msec",
    "Apart": "initiated by distinct(symbol) S(volume >= 0) as s terminated after 30 msec",
    "Ended": "initiated by S(price > 20) as s terminated by S(symbol = s.symbol, volume < 2)",
    "Now": "initiated @now and pattern [every timer:interval(15 msec)] terminated after 20 msec",
    "EndedKeys": "partition by symbol from S terminated by S(volume = 0)",
    "KeysInTurn": "context A start @now end after 30 msec, context B partition by symbol from S",
}


class Grammar(Words):
    """Statements of one random course."""

    # the parts behind

    def rate(self) -> str:
        """When rows leave."""
        every = self._of(
            lambda: f"every {self._number(2, 3, 4, 5)} events", lambda: f"every {self._number(5, 10, 15, 20, 40)} msec"
        )
        after = self._maybe(0.12, lambda: f"after {self._of('3 events', '20 msec')} ")
        return self._of(
            lambda: f" output {after}{every}",
            lambda: f" output {after}{self._of('last', 'all', 'first')} {every}",
            lambda: f" output {after}{self._of('last', 'all', 'first')} {every}",
            lambda: f" output {after}snapshot {every}",
            lambda: f" output after {self._of('3 events', '20 msec')}",
            lambda: f" output {self._of('', 'last ', 'all ')}when {self._of('count_insert >= 3', 'count_remove > 1')}",
            lambda: f" output {self._of('', 'last ', 'snapshot ')}at (*, *, *, *, *, *)",
        )

    def _properties(self, context: str) -> list[str]:
        if not context or self._random.random() < 0.5:
            return []
        named = {
            "Symbols": "key1", "Pairs": "key2", "Shared": "key1", "Bands": "label", "Nested": "A.key1", "Mixed": "B.key1",
            "Turns": "endTime", "Later": "startTime", "Many": "s.price", "Apart": "s.symbol", "Ended": "s.volume",
        }  # fmt: skip
        found = ["context.id"]
        return [*found, f"context.{named[context]}"] if context in named else found

    def context(self) -> str:
        """The name of a context, or none."""
        if self._random.random() < 0.7:
            return ""
        return self._random.choice([*CONTEXTS][: 8 if self._common else None])

    # statements

    def statement(self) -> str:
        """A select of any kind, with its context."""
        made = self._of(*(self.plain,) * 7, self.joined, self.joined, self.pattern, self.pattern, self.asking)
        context = self.context() if "from S" in made or "=S" in made else ""
        columns, source = made.split(" from ", 1)
        kind, columns = columns.split(" ", 1)
        selector = self._of("", "", "", "irstream ", "irstream ", "rstream ")
        within = "".join(f"{each} as c{place}, " for place, each in enumerate(self._properties(context)))
        named = f"context {context} " if context else ""
        return f"{named}{kind} {selector}{within}{columns} from {source}"

    def _behind(self, aggregated: bool, shown: Sequence[str]) -> str:
        """`having`, the rate, the order: what comes after the groups."""
        having = ""
        if aggregated and self._random.random() < 0.2:
            having = f" having {self._of('count(*)', 'sum(' + self.field('volume') + ')')} {self._of('>', '!=', '<')} 2"
        order = ""
        if shown and self._random.random() < 0.15:
            order = " order by " + ", ".join(each + self._of("", " desc") for each in shown[:2])
            order += self._maybe(0.4, f" limit {self._number(1, 2, 3)}{self._maybe(0.3, ' offset 1')}")
        return having + self._maybe(0.25 if self._common else 0.4, self.rate) + order

    def _grouping(self) -> tuple[str, list[str]]:
        keys = self._random.choice([["symbol"], ["symbol"], ["volume"], ["symbol", "volume"], ["flag"]])
        keys = [self._prefix + each for each in keys]
        listed = ", ".join(keys)
        if self._random.random() < 0.12:
            a, b = self._prefix + "symbol", self._prefix + "volume"
            sets = self._of(f"rollup({a}, {b})", f"cube({a}, {b})", f"grouping sets(({a}), ({b}), ())", f"rollup({a})")
            return sets, [a, b] if b in sets else [a]
        return listed, keys

    def _selected(self, windowed: bool, source: str) -> str:
        """Columns, source, groups and what is behind, over the properties of one input."""
        where = self._maybe(0.25, lambda: f" where {self.condition()}")
        if self._random.random() < 0.35:
            columns = self._some(3, self.scalar)
            if windowed and self._random.random() < 0.15:
                columns.append(f"{self._of('prev', 'prior')}({self._number(1, 2)}, {self.field('price', 'volume')})")
            shown = [self.field("price"), self.field("symbol")]
            distinct = self._maybe(0.06, "distinct ")
            return f"select {distinct}{_named(columns)} from {source}{where}{self._behind(False, shown)}"
        totals = self._some(3, lambda: self.aggregate(windowed))
        if self._random.random() < 0.3:
            extra = self._some(1, self.scalar) if self._random.random() < 0.4 else []
            behind = self._behind(True, totals[:1])
            return f"select {_named([*extra, *totals])} from {source}{where}{behind}"
        grouping, keys = self._grouping()
        extra = [self.field("price")] if self._random.random() < 0.3 and "(" not in grouping else []
        shown = keys if self._random.random() < 0.9 else keys[:0]
        behind = self._behind(True, [*totals[:1], *keys])
        return f"select {_named([*shown, *extra, *totals])} from {source}{where} group by {grouping}{behind}"

    def plain(self) -> str:
        """A select over one stream."""
        self._prefix = ""
        window = self.window()
        return self._selected(bool(window), f"{self._of('S', 'S', 'S', 'S', 'S', 'R')}{self.filter()}{window}")

    def _side(self, stream: str, name: str, none: float) -> str:
        return f"{stream}{self.filter(0.25)}{self.window(none, False)} as {name}"

    def joined(self) -> str:
        """A select over two or three streams."""
        on = self._of("a.symbol = b.symbol", "a.symbol = b.symbol", "a.volume = b.volume", "a.price > b.price")
        one, other = self._side("S", "a", 0), self._side(self._of("R", "R", "S"), "b", 0)
        alone = self._of("", "", "a")
        if alone:
            one = f"S{self.filter(0.25)} as a unidirectional"
        outer = self._of("", "", "left outer", "full outer", "right outer", "inner")
        if outer and ">" in on:
            on = "a.flag = b.flag"
        source = f"{one} {outer} join {other} on {on}" if outer else f"{one}, {other}"
        self._prefix = self._of("a.", "b.")
        found = self._selected(False, source)
        self._prefix = ""
        if outer or self._random.random() < 0.05:
            return found
        before, behind = found.split(source, 1)
        if behind.startswith(" where "):
            return f"{before}{source} where {on} and {behind[len(' where ') :]}"
        return f"{before}{source} where {on}{behind}"

    def _atom(self, tag: str, tags: Sequence[str]) -> str:
        conditions = [self.filter(1)[1:-1]] if self._random.random() < 0.4 else []
        if tags and self._random.random() < 0.7:
            before = self._random.choice(tags)
            conditions.append(
                self._of(f"symbol = {before}.symbol", f"price > {before}.price", f"volume != {before}.volume")
            )
        return f"{tag}={self._of('S', 'S', 'R')}{'(' + ', '.join(conditions) + ')' if conditions else ''}"

    def pattern(self) -> str:
        """A select over a pattern."""
        self._prefix = ""
        a, b, c = (self._atom(tag, tags) for tag, tags in (("a", ""), ("b", "a"), ("c", "ab")))
        alone = self._atom("b", "")
        within = self._maybe(0.5, lambda: f" where timer:within({self._span()})")
        body = self._of(
            *(f"every {a} -> {b}{within}",) * 4,
            f"every ({a} -> {b}{within})",
            f"every {a} -> {b} -> {c}{within}",
            f"every {a} -> ({b} and {c})",
            f"every ({a} or {alone})",
            f"every ({a} and {alone})",
            f"every {a} -> ({b} and not {self._atom('c', 'a')})",
            f"every {a} -> (timer:interval({self._span()}) and not {b})",
            f"every {a} -> timer:interval({self._span()})",
            f"every [2] {a}",
            f"every-distinct({self._of('a.symbol', 'a.volume')}) {a} -> {b}",
            f"{a} -> every {b}",
        )
        source = f"pattern [{body}]"
        if "[2] a" in body:
            return f"select a[0].price as x, a[1].symbol as y from {source}"
        tagged = "ab" if "b=" in body.replace("not b=", "") else "a"
        self._prefix = self._random.choice(tagged) + "."
        found = self._selected(False, source)
        self._prefix = ""
        return found

    def asking(self) -> str:
        """A select with sub-queries."""
        self._prefix = ""
        inner = f"R{self.filter(0.3)}{self.window(0.0, False)}"
        same = self._maybe(0.5, " where q.symbol = S.symbol")
        self._prefix = "q."
        query = self._of(
            lambda: (
                f"(select {self._of('max', 'sum', 'count', 'avg')}({self.field('price', 'volume')}) from {inner} as q{same})"
            ),
            lambda: f"exists (select * from {inner} as q{same})",
            lambda: f"S.volume in (select volume from {inner} as q{same})",
            lambda: f"(select price from R#lastevent as q{same})",
            lambda: f"S.price > {self._of('any', 'all')} (select price from {inner} as q{same})",
        )
        self._prefix = ""
        stream = f"S{self.filter()}{self.window(0.5, False)}"
        if query.startswith(("exists", "S.")) and self._random.random() < 0.5:
            return f"select symbol, price from {stream} as S where {query}"
        return f"select symbol, {query} as q from {stream} as S"

    def program(self) -> list[str]:
        """One statement, or some that insert into one another or share a named window or a table."""
        self._prefix = ""
        return self._random.choice([lambda: [self.statement()]] * 9 + [self._inserting, self._kept, self._stored])()

    def _inserting(self) -> list[str]:
        made = f"insert into U select symbol, {self._of('price', 'avg(price)', 'sum(price)')} as a, volume as n from S"
        rate = self._maybe(0.2, self.rate)
        before = f"{made}{self.filter()}{self.window(0.4)}{self._of('', ' group by symbol')}{rate}"
        total = self._of("sum(a)", "count(*)", "max(n)", "avg(a)")
        reading = self._of(
            f"select symbol, {total} as t from U#length({self._length()}) group by symbol",
            f"select irstream {total} as t from U#time({self._span()})",
            f"select symbol, a from U({self._of('a > 20', 'n > 1')})",
            "select x.a as p, y.a as q from pattern [every x=U -> y=U(symbol = x.symbol)]",
        )
        return [before, reading] if self._random.random() < 0.7 else [reading, before]

    def _kept(self) -> list[str]:
        """A named window, what comes into it, and who follows it or changes it."""
        every = [f"create window W{self.window(0, False)} as S", f"insert into W select * from S{self.filter()}"]
        for _ in range(self._random.randint(1, 3)):
            every.append(
                self._of(
                    lambda: self._selected(False, f"W{self.filter(0.3)}"),
                    lambda: self._selected(False, f"W{self.filter(0.3)}"),
                    "on R select w.symbol as x, w.price as y from W as w where w.symbol = R.symbol",
                    f"on R as r delete from W where {self._of('W.symbol = r.symbol', 'W.volume < r.volume')}",
                    "on R as r update W set price = r.price where W.symbol = r.symbol",
                    "on R as r merge W as w where w.symbol = r.symbol when matched and r.volume > 2 then delete "
                    "when matched then update set volume = w.volume + 1",
                    f"select symbol, (select {self._of('max(price)', 'count(*)')} from W where W.symbol = R.symbol) as m from R",
                )
            )
        return every

    def _stored(self) -> list[str]:
        """A table, what comes into it, and who looks things up in it."""
        window = self.window(0.4, False)
        most = "max" if window else "maxever"
        source = f"S{self.filter()}{window}{self._maybe(0.3, lambda: f' where {self.condition()}')}"
        return [
            f"create table T(symbol string primary key, n count(*), s sum(double), m {most}(int))",
            f"into table T select symbol, count(*) as n, sum(price) as s, {most}(volume) as m from {source} group by symbol",
            self._of(
                "select symbol, T[symbol].n as n, T[symbol].s as s from R",
                "select R.symbol as x, T.n as n, T.m as m from R unidirectional, T where T.symbol = R.symbol",
                "on R select t.symbol as x, t.s as y from T as t where t.n > R.volume",
                "select symbol, (select s from T where T.symbol = R.symbol) as s from R",
            ),
        ]


def contexts(program: Sequence[str]) -> str:
    """The contexts that a program names, as a module."""
    asked = {text.split()[1] for text in program if text.startswith("context ")}
    return "".join(f"create context {name} {text};\n" for name, text in CONTEXTS.items() if name in asked)


def _named(columns: Sequence[str]) -> str:
    return ", ".join(f"{each} as x{place}" for place, each in enumerate(columns))
