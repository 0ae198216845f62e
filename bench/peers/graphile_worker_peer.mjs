// graphile-worker: one worker process. `node graphile_worker_peer.mjs FOLDER ORDER`, FOLDER holding node_modules.
// It answers the same orders as the Python peers (see ../order.py), with the same clock: from just before the worker
// starts until the database holds no unfinished job.
import { createRequire } from "node:module";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

const [folder, orderText] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(folder), "package.json"));
const { run, makeWorkerUtils, Logger } = require("graphile-worker");
const { Pool } = createRequire(require.resolve("graphile-worker"))("pg");

// Its batching options, which it offers for many short jobs: a local queue that claims many at once, and completions
// gathered into one statement. Tried: concurrency 10, 24 and 100, local queue 200 to 5000; these gave the best rate.
const CONCURRENCY = 10;
const LOCAL_QUEUE = 2000;
const COMPLETE_DELAY_MS = 0;
const POOL = CONCURRENCY + 1;
const FILL_CHUNK = 5_000;
const POLL_MS = 5;
const UNFINISHED = "SELECT EXISTS (SELECT 1 FROM graphile_worker._private_jobs) AS unfinished";
const LEFT = "SELECT count(*)::int AS n FROM graphile_worker._private_jobs";

// Warnings and errors only: a line per job would measure the terminal.
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(level, message);
});

async function prepare(order, pool) {
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  await utils.release();
  return {};
}

async function fill(order, pool) {
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  for (let start = 0; start < order.count; start += FILL_CHUNK) {
    const size = Math.min(FILL_CHUNK, order.count - start);
    await utils.addJobs(Array.from({ length: size }, (_, n) => ({ identifier: "noop", payload: { n: start + n } })));
  }
  await utils.release();
  return {};
}

async function drain(order, pool) {
  let handled = 0;
  let allHandled;
  const lastJob = new Promise((resolve) => (allHandled = resolve));
  const noop = async () => {
    if (++handled === order.count) allHandled();
  };
  const preset = {
    worker: {
      concurrentJobs: CONCURRENCY,
      localQueue: { size: LOCAL_QUEUE },
      completeJobBatchDelay: COMPLETE_DELAY_MS,
      failJobBatchDelay: COMPLETE_DELAY_MS,
    },
  };
  const started = performance.now();
  const runner = await run({ pgPool: pool, taskList: { noop }, preset, logger, noHandleSignals: true, parsedCronItems: [] });
  await lastJob;
  while ((await pool.query(UNFINISHED)).rows[0].unfinished) await sleep(POLL_MS);
  const seconds = (performance.now() - started) / 1000;
  await runner.stop();
  const left = (await pool.query(LEFT)).rows[0].n;
  return { seconds, handled, finished: order.count - left };
}

const order = JSON.parse(orderText);
const verbs = { prepare, fill, drain };
const pool = new Pool({ connectionString: order.target.address, max: POOL });
const complain = (error) => console.error(error.message);
pool.on("error", complain);
pool.on("connect", (client) => client.on("error", complain));
const outcome = await verbs[order.verb](order, pool);
await pool.end();
console.log(JSON.stringify(outcome));
