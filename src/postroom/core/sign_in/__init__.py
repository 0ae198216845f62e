"""How people prove who they are to the pages: names, obvious passwords, waits after failures, times of sessions."""
