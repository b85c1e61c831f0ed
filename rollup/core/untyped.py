"""Libraries whose functions are made when they are imported, where no type checker can see them."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as _compute

pc: Any = _compute
"""`pyarrow.compute`."""
