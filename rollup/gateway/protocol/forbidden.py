"""The statements PostgreSQL lets every role run on itself, which no grant can take away.

A role may change its own password, store settings for its next sessions, and give up what it was granted: one BI
client could lock all others out. It may wake the sessions that listen, and take more memory for its sorts than the
server was given. So texts that may hold such a statement are refused. The check errs on the safe side:
whether words stand in a string or a comment depends on settings the session can change, so it does not ask, and a
query with the words "alter role" in a string is refused too.
"""

from __future__ import annotations

import re

SHORT = 4_096
"""Characters of a text that is looked at on the spot, in well under a millisecond here and some tens in a parser."""

_DIRECT = re.compile(rb"\b(?:alter\s+(?:role|user|group|default)|(?:drop|reassign)\s+owned)\b", re.IGNORECASE)
_BROKEN_UP = re.compile(rb"\b(?:alter|drop|reassign)\s*(?:--|/\*)", re.IGNORECASE)
_NOTIFY = re.compile(rb"(?:^|;|\*/|\n)\s*notify\b", re.IGNORECASE)
_SET = re.compile(rb"\bset(?:_config)?\b", re.IGNORECASE)
_MEMORY = re.compile(rb"(?:work_mem|hash_mem_multiplier|temp_buffers)\b", re.IGNORECASE)
_OBJECT = re.compile(rb"\b(?:role|user|group|default|owned)\b", re.IGNORECASE)


def forbidden(text: bytes) -> bool:
    """Whether a text, in any client encoding, may hold a statement of this kind; in time linear in its length.

    >>> forbidden(b"select 1; ALTER /* nothing */ USER ann password 'x'"), forbidden(b"select role")
    (True, False)
    >>> forbidden(b"SET work_mem = '2GB'"), forbidden(b"show work_mem")
    (True, False)
    """
    if _DIRECT.search(text) or _NOTIFY.search(text):
        return True
    setting = _SET.search(text)
    if setting is not None and _MEMORY.search(text, setting.end()) is not None:
        return True
    # The first comment in such a place is enough: all that follows it is behind the later ones as well.
    comment = _BROKEN_UP.search(text)
    return comment is not None and _OBJECT.search(text, comment.end()) is not None
