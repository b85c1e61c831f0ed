"""The join of two windows of streams."""

from __future__ import annotations

from rollup.engine.programs.operators.base import Left, List, Operator, Pair, Right, port


class StreamJoin(Operator):
    """Takes in what a change brings into both windows and takes out of them, and then pairs these rows with the others.

    While the change goes on, the rows of a side are in its indexes as they were before it. `left_also` are the rows of the
    change on the left, which a row on the right also has for partners. `unmade`: the pairs that leave.
    `left_moves`, `right_moves`: whether rows of the side bring pairs about; `leaving`: whether pairs leave.
    """

    left_moves: bool
    right_moves: bool
    leaving: bool
    left_came: List[Left]
    left_gone: List[Left]
    left_also: List[Left]
    right_came: List[Right]
    right_gone: List[Right]
    unmade: List[Pair]

    @port
    def enter_left(self, row: Left) -> None:
        """A row into the indexes of the left side."""

    @port
    def leave_left(self, row: Left) -> None:
        """A row out of them."""

    @port
    def enter_right(self, row: Right) -> None:
        """A row into the indexes of the right side."""

    @port
    def leave_right(self, row: Right) -> None:
        """A row out of them."""

    @port
    def pair_left(self, row: Left, sign: int) -> None:
        """The pairs of a row of the left side."""

    @port
    def pair_right(self, row: Right, sign: int) -> None:
        """The pairs of a row of the right side that no row of the change on the left has brought about."""

    @port
    def emit_remove(self, pair: Pair) -> None:
        """A pair leaves."""

    @port
    def emit_flush(self) -> None:
        """The change is over."""

    def left_insert(self, row: Left) -> None:
        """A row has come into the left window."""
        self.left_came.append(row)

    def left_remove(self, row: Left) -> None:
        """A row has left it."""
        self.left_gone.append(row)

    def right_insert(self, row: Right) -> None:
        """A row has come into the right window."""
        self.right_came.append(row)

    def right_remove(self, row: Right) -> None:
        """A row has left it."""
        self.right_gone.append(row)

    def flush(self) -> None:
        """The change is over: pairs that come, then those that leave, of the left side first."""
        if self.leaving:
            for row in self.left_gone:
                self.pair_left(row, -1)
        for row in self.left_gone:
            self.leave_left(row)
        if self.leaving:
            for row in self.left_gone:
                self.left_also.append(row)
            for row in self.right_gone:
                self.pair_right(row, -1)
            self.left_also.clear()
        for row in self.right_gone:
            self.leave_right(row)
        if self.left_moves:
            for row in self.left_came:
                self.pair_left(row, 1)
        if self.right_moves:
            for row in self.left_came:
                self.left_also.append(row)
            for row in self.right_came:
                self.pair_right(row, 1)
            self.left_also.clear()
        for row in self.left_came:
            self.enter_left(row)
        for row in self.right_came:
            self.enter_right(row)
        self.left_came.clear()
        self.left_gone.clear()
        self.right_came.clear()
        self.right_gone.clear()
        for pair in self.unmade:
            self.emit_remove(pair)
        self.unmade.clear()
        self.emit_flush()
