// Starts the worker. Browsers have none on plain http, unless it is this very machine, and refuse it in private windows:
// the pages then work without.
"use strict";

navigator.serviceWorker?.register("/static/worker.js", { scope: "/" }).catch(() => {});
