"""How long a test waits for something that must come.

Long, since the waiting ends as soon as it comes: only a failure takes all of it, and a machine that is busy with other
things makes no difference. A test that is about time has a clock of its own.
"""

PATIENCE_S = 240.0
