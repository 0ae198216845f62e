// What htmx leaves to the page: the state of the connection, times relative to now, a mark on new rows, and throttled
// announcements for screen readers. htmx does the swapping, from the attributes of #board.
"use strict";

(() => {
  const SILENCE_MS = 45_000; // three pulses of the server went missing
  const WATCH_MS = 5_000;
  const RETRY_MS = 2_000;
  const TICK_MS = 5_000;
  const ANNOUNCE_MS = 5_000;
  const SUBMIT_MS = 5_000;
  const SIGNED_OUT = 401;
  // The language of the pages: times in the browser's own would stand between English words.
  const LANGUAGE = "en-GB";
  const WORDS = {
    connecting: "Connecting…",
    live: "Live",
    reconnecting: "Reconnecting…",
    stalled: "Not updating: data cannot be read",
    ended: "Signed out: sign in in another tab",
  };

  const board = document.getElementById("board");
  // In the zone in which the server drew the page.
  const clock = new Intl.DateTimeFormat(LANGUAGE, { timeStyle: "medium", timeZone: board.dataset.zone });
  const link = document.getElementById("link");
  const announcer = document.getElementById("announcer");
  let connection = null;
  let heardAt = Date.now();
  let known = rows();
  let announcing = 0;
  let retrying = 0;

  function setState(state) {
    if (link.dataset.state === state || (state === "reconnecting" && link.dataset.state === "ended")) return;
    link.dataset.state = state;
    link.querySelector(".text").textContent = WORDS[state];
    const isStale = state !== "live" && state !== "connecting";
    board.toggleAttribute("data-stale", isStale);
    link.title = isStale ? `What you see is from ${clock.format(heardAt)}` : "";
  }

  function rows() {
    return new Set(Array.from(board.querySelectorAll("[data-row]"), (row) => row.id));
  }

  function markArrivals() {
    const now = rows();
    for (const id of now) if (id && !known.has(id)) document.getElementById(id).dataset.arrived = "";
    known = now;
  }

  // The number that waits for a yes stands in the navigation and in the title of the tab.
  const title = document.title;
  function countWaiting() {
    const waiting = Number(document.getElementById("waiting")?.value ?? 0);
    for (const count of document.querySelectorAll("[data-waiting]")) {
      count.hidden = waiting === 0;
      count.textContent = String(waiting);
      count.ariaLabel = `${waiting} waiting`;
    }
    document.title = waiting ? `(${waiting}) ${title}` : title;
  }

  function showAccount() {
    const account = document.getElementById("account")?.value;
    for (const each of document.querySelectorAll("[data-account]")) each.textContent = account ?? each.textContent;
  }

  // Updates leave alone what somebody writes on; who signs in again in another tab must still be able to send it.
  function renewTokens() {
    const token = document.getElementById("form-token")?.value;
    for (const each of board.querySelectorAll("[data-own] input[name=form_token]")) each.value = token ?? each.value;
  }

  function announce() {
    announcing ||= setTimeout(() => {
      announcing = 0;
      announcer.textContent = board.querySelector("[data-summary]")?.dataset.summary ?? "";
    }, ANNOUNCE_MS);
  }

  // The session has ended: what it showed goes, and the sign-in page comes. What somebody has typed stays.
  function leave() {
    const fields = Array.from(board.querySelectorAll("textarea, input"));
    const isTyped = fields.some((each) => each.value !== each.defaultValue || each.checked !== each.defaultChecked);
    if (isTyped) setState("ended");
    else location.reload();
  }

  // htmx reconnects a stream that broke, but gives up on one that never opened.
  function retry() {
    setState("reconnecting");
    retrying ||= setTimeout(() => {
      retrying = 0;
      connect();
    }, RETRY_MS);
  }

  function connect() {
    if (document.hidden) document.addEventListener("visibilitychange", connect, { once: true });
    else htmx.trigger(board, "retry");
  }

  // Browsers open six connections to one server, for all tabs together. htmx closes the stream of a tab that goes into
  // the background; one that begins there must not open any, or a handful of them would leave none for pages and forms.
  if (document.hidden) {
    board.setAttribute("hx-trigger", "retry");
    connect();
  }

  // A second press, while the answer to the first is on its way, would do the act twice.
  const submitted = new WeakMap();
  window.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (Date.now() - (submitted.get(event.target) ?? -Infinity) < SUBMIT_MS) event.preventDefault();
    else submitted.set(event.target, Date.now());
  });
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  // A network that fails silently leaves a stream that is open but dead.
  function watch() {
    if (document.hidden || link.dataset.state !== "live" || Date.now() - heardAt < SILENCE_MS) return;
    setState("reconnecting");
    connection?.reader?.cancel();
  }

  board.addEventListener("htmx:sse:before:connection", (event) => {
    connection = event.detail.connection;
    if (connection.attempt > 0) setState("reconnecting");
  });
  board.addEventListener("htmx:sse:before:message", () => { heardAt = Date.now(); });
  board.addEventListener("htmx:sse:after:message", (event) => {
    if (event.detail.message.event) return;
    setState("live");
    markArrivals();
    countWaiting();
    showAccount();
    renewTokens();
    announce();
  });
  board.addEventListener("stalled", () => setState("stalled"));
  board.addEventListener("htmx:sse:error", (event) => {
    setState("reconnecting");
    if (event.detail.status === SIGNED_OUT) leave();
  });
  // Parts of the board make requests of their own, whose failures say nothing about the stream.
  for (const failure of ["htmx:error", "htmx:response:error", "htmx:sse:close"]) {
    board.addEventListener(failure, (event) => {
      if (event.target !== board) return;
      if (event.detail.ctx?.response?.status === SIGNED_OUT) leave();
      retry();
    });
  }
  // A form that was refused may stand in a dialog, which no page opens by itself.
  document.getElementById("problem")?.closest("[popover]")?.showPopover();
  setInterval(watch, WATCH_MS);
  link.hidden = !board.hasAttribute("hx-sse:connect"); // a page without a stream says nothing about one
  countWaiting();

  const relative = new Intl.RelativeTimeFormat(LANGUAGE, { numeric: "auto", style: "short" });
  const UNITS = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];

  function sinceNow(moment) {
    const seconds = Math.round((moment - Date.now()) / 1_000);
    const [unit, size] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? UNITS.at(-1);
    return relative.format(Math.trunc(seconds / size), unit);
  }

  // The shadow DOM shows how long ago; the text inside, which htmx compares with the server's, stays unchanged, and is
  // what stands on paper.
  const paper = matchMedia("print");
  class RelativeTime extends HTMLElement {
    static observedAttributes = ["at"];
    static all = new Set();
    #shown = document.createElement("span");

    constructor() {
      super();
      this.attachShadow({ mode: "open" }).append(this.#shown);
    }

    connectedCallback() { RelativeTime.all.add(this); }
    disconnectedCallback() { RelativeTime.all.delete(this); }
    attributeChangedCallback() { this.show(); }

    show() {
      this.#shown.textContent = paper.matches ? this.textContent : sinceNow(new Date(this.getAttribute("at")));
    }
  }
  customElements.define("relative-time", RelativeTime);
  const showAll = () => { for (const each of RelativeTime.all) each.show(); };
  paper.addEventListener("change", showAll);
  setInterval(showAll, TICK_MS);
})();
