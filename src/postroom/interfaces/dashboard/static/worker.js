// Runs beside the pages: while Postroom cannot be reached, a page that is opened is an empty shell that says so. Nothing
// else passes through here: no form, no stream, no answer of the API. CACHE and KEPT are written above by the server.
"use strict";

const SHELL = KEPT[0];
const NO_ANSWER = [502, 504]; // of a proxy in front of Postroom, which itself never says so

async function install() {
  const cache = await caches.open(CACHE);
  await cache.addAll(KEPT.map((address) => new Request(address, { credentials: "omit" })));
  await skipWaiting();
}

async function replaceEarlier() {
  for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name);
}

async function open(request) {
  try {
    const answer = await fetch(request);
    if (!NO_ANSWER.includes(answer.status)) return answer;
  } catch {
    // There is no network, or nobody at its other end.
  }
  return (await caches.match(SHELL)) ?? Response.error();
}

addEventListener("install", (event) => event.waitUntil(install()));
addEventListener("activate", (event) => event.waitUntil(replaceEarlier()));
addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (request.mode === "navigate" && request.destination === "document") event.respondWith(open(request));
  else if (KEPT.includes(pathname)) event.respondWith(caches.match(request).then((kept) => kept ?? fetch(request)));
});
