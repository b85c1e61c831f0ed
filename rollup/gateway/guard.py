"""The statements PostgreSQL lets every role run on itself, which no grant can take away.

A role may change its own password, store settings for its next sessions, and give up what it was granted: one BI
client could lock all others out. So texts that may hold such a statement are refused. The check errs on the safe side:
whether words stand in a string or a comment depends on settings the session can change, so it does not ask, and a
query with the words "alter role" in a string is refused too.
"""

from __future__ import annotations

import re

_DIRECT = re.compile(rb"\b(?:alter\s+(?:role|user|group|default)|(?:drop|reassign)\s+owned)\b", re.IGNORECASE)
_BROKEN_UP = re.compile(rb"\b(?:alter|drop|reassign)\s*(?:--|/\*)", re.IGNORECASE)
_OBJECT = re.compile(rb"\b(?:role|user|group|default|owned)\b", re.IGNORECASE)


def changes_own_role(text: bytes) -> bool:
    """Whether a text, in any client encoding, may change the role that runs it; in time linear in its length.

    >>> changes_own_role(b"select 1; ALTER /* nothing */ USER ann password 'x'"), changes_own_role(b"select role")
    (True, False)
    """
    if _DIRECT.search(text):
        return True
    # The first comment in such a place is enough: all that follows it is behind the later ones as well.
    comment = _BROKEN_UP.search(text)
    return comment is not None and _OBJECT.search(text, comment.end()) is not None
