"""Parts of random EPL statements: expressions over one row, windows, aggregates."""

from __future__ import annotations

from collections.abc import Callable
from random import Random


class Words:
    """The parts of one random course. Each method gives one form of a part of the language."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._prefix = ""
        self._common = random.random() < 0.5
        """Whether only what is common stands together: it meets itself more often then."""

    # choosing

    def _of(self, *options: str | Callable[[], str]) -> str:
        found = self._random.choice(options)
        return found if isinstance(found, str) else found()

    def _maybe(self, chance: float, text: str | Callable[[], str]) -> str:
        if self._random.random() >= chance:
            return ""
        return text if isinstance(text, str) else text()

    def _number(self, *options: int) -> str:
        return str(self._random.choice(options))

    def _some(self, most: int, part: Callable[[], str]) -> list[str]:
        return [part() for _ in range(self._random.randint(1, most))]

    # expressions over one row; `_prefix` is the name of the input that is asked

    def field(self, *names: str) -> str:
        """A property."""
        return self._prefix + self._random.choice(names or ("symbol", "price", "volume", "big", "flag"))

    def number(self) -> str:
        """A numeric expression."""
        if self._common:
            return self.field("price", "volume")
        return self._of(
            lambda: self.field("price", "volume", "big"),
            lambda: self.field("price", "volume"),
            lambda: f"{self.field('price', 'volume')} {self._of('+', '-', '*', '/', '%')} {self._number(1, 2, 3, 7)}",
            lambda: f"{self.field('price')} * {self.field('volume')}",
            lambda: f"{self.field('volume')} + {self.field('big')}",
            lambda: f"{self.field('price', 'big')} / {self.field('volume')}",
            lambda: f"coalesce({self.field('volume')}, {self._number(-1, 0, 2)})",
            lambda: f"-{self.field('price', 'volume')}",
            lambda: f"case when {self.condition()} then {self.field('price')} else {self._number(0, 5)} end",
            lambda: f"cast({self.field('price', 'volume')}, {self._of('int', 'long', 'double')})",
            lambda: f"Math.abs({self.field('price')})",
        )

    def scalar(self) -> str:
        """An expression of any kind."""
        if self._common:
            return self.field()
        return self._of(
            self.number,
            lambda: self.field(),
            lambda: self.field("symbol"),
            lambda: f"{self.field('symbol')} || 'x'",
            lambda: f"case {self.field('symbol')} when 'a' then 1 when 'b' then 2 end",
            lambda: self.field("price") + " > " + self.field("volume"),
            "current_timestamp",
        )

    def condition(self, depth: int = 0) -> str:
        """A condition."""
        if depth < 2 and self._random.random() < 0.25:
            left, right = self.condition(depth + 1), self.condition(depth + 1)
            return self._of(f"({left} and {right})", f"({left} or {right})", f"not ({left})")
        compared = self._of("=", "!=", "<", ">", "<=", ">=", "is", "is not")
        return self._of(
            lambda: f"{self.field('price')} {compared} {self._number(1, 20, 40, 45, 60)}",
            lambda: f"{self.field('volume')} {compared} {self._number(-1, 0, 1, 2, 3)}",
            lambda: f"{self.field('volume')} {self._of('<', '>', '=')} {self._number(0, 1, 2, 3)}",
            lambda: f"{self.field('symbol')} {self._of('=', '!=', 'is', 'is not')} '{self._of('a', 'b')}'",
            lambda: f"{self.field('symbol')} {self._of('', 'not ')}in ('a', 'c')",
            lambda: f"{self.field('volume')} {self._of('', 'not ')}in (1, 2)",
            lambda: f"{self.field('price')} {self._of('', 'not ')}between 20 and 50",
            lambda: f"{self.field('symbol')} like '{self._of('a%', '_', '%b')}'",
            lambda: f"{self.field('price', 'symbol', 'volume')} is {self._of('', 'not ')}null",
            lambda: self.field("flag"),
            lambda: f"{self.field('price')} > {self.field('volume')}",
        )

    def filter(self, chance: float = 0.4) -> str:
        """What stands behind a stream in parentheses, without the names of inputs."""
        before, self._prefix = self._prefix, ""
        found = self._maybe(chance, lambda: f"({self.condition()})")
        self._prefix = before
        return found

    # windows

    def keys(self) -> str:
        """What a window has its keys by."""
        return self._of("symbol", "symbol", "volume", "symbol, volume", "flag")

    def window(self, none: float = 0.2, union: bool = True) -> str:
        """A window, or several that keep what all of them do or (`union`) what one does, or none."""
        if self._random.random() < none:
            return ""
        one = self._one_window
        if self._random.random() < 0.15:
            return f"#groupwin({self.keys()})#{self._grouped()}"
        if self._random.random() < 0.12:
            return f"#{one()}#{one()}" + (self._maybe(0.4, " retain-union") if union else "")
        return f"#{one()}"

    def _span(self) -> str:
        return f"{self._number(5, 15, 20, 30, 50)} msec"

    def _length(self) -> str:
        return self._number(1, 2, 3, 4, 5)

    def _order(self) -> str:
        return f"{self._of('price', 'volume', 'symbol')}{self._of('', ' desc')}"

    def _grouped(self) -> str:
        return self._of(
            lambda: f"length({self._length()})",
            lambda: f"time({self._span()})",
            lambda: f"length_batch({self._length()})",
            lambda: f"time_batch({self._span()})",
            lambda: "lastevent",
            lambda: f"sort({self._length()}, {self._order()})",
        )

    def _one_window(self) -> str:
        if self._common:
            return self._of(*(self._simple_window,) * 4, lambda: f"unique({self.keys()})")
        return self._of(
            *(self._simple_window,) * 3,
            lambda: f"unique({self.keys()})",
            lambda: f"sort({self._length()}, {self._order()})",
            lambda: f"sort({self._length()}, {self._order()}, big)",
            lambda: f"rank({self._of('symbol', 'volume', 'flag')}, {self._length()}, {self._order()})",
            lambda: f"{self._of('ext_timed', 'ext_timed_batch', 'time_order')}(ts, {self._span()})",
            lambda: f"time_accum({self._span()})",
            lambda: f"time_length_batch({self._span()}, {self._length()})",
            lambda: self._of(
                "lastevent", "firstevent", f"firstlength({self._length()})", f"firstunique({self.keys()})"
            ),
            lambda: f"firsttime({self._span()})",
            lambda: (
                f"expr({self._of('current_count <= 3', 'sum(volume) < 6', 'newest_timestamp - oldest_timestamp < 20')})"
            ),
            lambda: f"expr_batch({self._of('current_count > 2', 'volume = 0', 'sum(price) > 100')})",
        )

    def _simple_window(self) -> str:
        return self._of(
            lambda: f"length({self._length()})",
            lambda: f"time({self._span()})",
            lambda: f"length_batch({self._length()})",
            lambda: f"time_batch({self._span()})",
            "keepall",
        )

    # aggregates

    def aggregate(self, windowed: bool) -> str:
        """An aggregate; some need a window."""
        further = self._maybe(0.12, lambda: f", filter: {self.condition()}")
        ever = self._of("maxever", "minever", "lastever", "firstever", "countever")
        plain = (
            lambda: f"sum({self.number()}{further})",
            lambda: f"avg({self.number()}{further})",
            "count(*)",
            lambda: f"count({self.scalar()}{further})",
            lambda: f"{self._of('max', 'min')}({self.number()}{further})",
            lambda: f"{ever}({self.field('price', 'volume')})",
            lambda: f"{self._of('median', 'stddev', 'avedev')}({self.field('price', 'volume')})",
            lambda: f"{self._of('sum', 'count', 'avg')}(distinct {self.field('price', 'volume')})",
            lambda: f"count(distinct {self.field('symbol')})",
            lambda: (
                f"{self._of('sum', 'avg', 'count')}({self.field('price', 'volume')}, group_by: {self._own_group()})"
            ),
        )
        kept = (
            lambda: f"{self._of('first', 'last')}({self.field('price', 'volume', 'symbol')})",
            lambda: f"window({self.field('price', 'symbol')})",
            lambda: f"nth({self.field('price', 'volume')}, {self._number(0, 1, 2)})",
            "leaving()",
        )
        return self._of(*plain[:5]) if self._common else self._of(*plain, *plain, *(kept if windowed else ()))

    def _own_group(self) -> str:
        return self._of(f"({self.field('symbol')})", f"({self.field('volume')})", "()")
