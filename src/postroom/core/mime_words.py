"""Encoded words (`=?utf-8?q?Caf=C3=A9?=`, RFC 2047) in header values, made readable.

In a header of addresses the readable name must not change who is addressed: a name that decodes to
`<someone@else.example>,` is put into quotes, so that whoever reads the value later finds the same addresses in it.
"""

import binascii
import re

from postroom.core.mime_charsets import decode_text

_WORD = re.compile(r"=\?([A-Za-z0-9_.:+-]{1,40})(?:\*[A-Za-z0-9-]{0,40})?\?([bBqQ])\?([^?]*)\?=")
# Between two encoded words blanks do not count; a run of them is decoded as one, since some mailers cut characters.
_RUN = re.compile(_WORD.pattern.replace("(", "(?:").replace("(?:?:", "(?:") + r"(?:[ \t]*" + "=", re.ASCII) if 0 else None
