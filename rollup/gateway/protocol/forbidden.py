"""The statements PostgreSQL lets every role run on itself, which no grant can take away.

A role may change its own password, store settings for its next sessions, and give up what it was granted: one BI
client could lock all others out. It may wake the sessions that listen, and take more memory for its sorts than the
server was given. So texts that may hold such a statement are refused. These statements begin with words that have one
spelling, so a search finds them. Rights bound what functions do (`ddl/gateway_roles.sql`), and the private server's
settings bound the memory of queries.

The check errs on the safe side. Whether words stand in a string or a comment depends on settings that the session can
change. So the check ignores that, and a query with the words "alter role" in a string is refused too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SHORT = 4_096
"""Characters of a text that is looked at on the spot, in well under a millisecond here and some tens in a parser."""

_DIRECT = re.compile(rb"\b(?:alter\s+(?:role|user|group|default)|(?:drop|reassign)\s+owned)\b", re.IGNORECASE)
_BROKEN_UP = re.compile(rb"\b(?:alter|drop|reassign)\s*(?:--|/\*)", re.IGNORECASE)
_NOTIFY = re.compile(rb"(?:^|;|\*/|[\n\r])\s?notify\b", re.IGNORECASE)
"""In a text whose gaps are short: a gap of any length would be looked through from each of its places."""
_GAP = re.compile(rb"\s+")
_SET = re.compile(rb"\bset(?:_config)?\b", re.IGNORECASE)
_MEMORY = re.compile(rb"(?:work_mem|hash_mem_multiplier|temp_buffers)\b", re.IGNORECASE)
_ESCAPED = re.compile(rb"\bu&\"", re.IGNORECASE)
"""A quoted name whose characters may be given by their numbers."""
_SORT = re.compile(rb"(?:^|\s)-[bEeFijlnOPsT]*S")
"""The switch that is `work_mem`, perhaps behind others of one letter."""
_OBJECT = re.compile(rb"\b(?:role|user|group|default|owned)\b", re.IGNORECASE)


def forbidden(text: bytes) -> bool:
    """Whether a text, in any client encoding, may hold a statement of this kind; in time linear in its length.

    >>> forbidden(b"select 1; ALTER /* nothing */ USER ann password 'x'"), forbidden(b"select role")
    (True, False)
    >>> forbidden(b"SET work_mem = '2GB'"), forbidden(b"show work_mem")
    (True, False)
    >>> forbidden(b"--x\\rnotify everybody"), forbidden(b'set U&"work\\\\005fmem" = 1'), forbidden(b'select U&"x"')
    (True, True, False)
    """
    if _DIRECT.search(text) or (b"notify" in text.lower() and _NOTIFY.search(_GAP.sub(_short, text))):
        return True
    setting = _SET.search(text)
    if setting is not None and any(name.search(text, setting.end()) for name in (_MEMORY, _ESCAPED)):
        return True
    # The first comment in such a place is enough: all that follows it is behind the later ones as well.
    comment = _BROKEN_UP.search(text)
    return comment is not None and _OBJECT.search(text, comment.end()) is not None


def _short(gap: re.Match[bytes]) -> bytes:
    return b"\n" if b"\n" in gap[0] or b"\r" in gap[0] else b" "


def forbidden_at_start(parameters: Mapping[bytes, bytes]) -> bool:
    """Whether a StartupMessage sets how much memory a query takes, by itself or in the switches of its `options`.

    >>> forbidden_at_start({b"options": b"-c geqo=off"}), forbidden_at_start({b"Work_Mem": b"1GB"})
    (False, True)
    >>> [forbidden_at_start({b"options": each}) for each in (b"--hash-mem-multiplier=9", b"-S 9000", b"-c wo\\\\rk_mem=9")]
    [True, True, True]
    """
    names = [key for key in parameters if key.lower() != b"options"]
    # A backslash stands before any character there, and a minus in the place of a sign that is no letter.
    switches = parameters.get(b"options", b"").replace(b"\\", b"")
    names.append(switches.replace(b"-", b"_"))
    return _SORT.search(switches) is not None or any(_MEMORY.search(name) for name in names)
