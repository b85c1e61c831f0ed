"""A window kind: up to `size` rows, which all leave when one more arrives, or when none has arrived for `span`."""

from __future__ import annotations

from dataclasses import dataclass

from rollup.engine.programs.operators.base import Row, s
from rollup.engine.programs.operators.windows import TimeAccumulating
from rollup.engine.rows.windows.base import Host, Window
from rollup.engine.rows.windows.counted import KeepAll


@dataclass(frozen=True)
class Emptying:
    """The plan's window. Rows do not know it: a stand-in is what they would build."""

    size: int
    span: int

    def build(self, host: Host) -> Window:
        return KeepAll().build(host)


class EmptyingWindow(TimeAccumulating):
    size: int

    def insert(self, row: Row) -> None:
        if len(self.rows) == self.size:
            self.on_timer()
        self.rows.append(row)
        self.last = s.now
        self.emit_insert(row)
