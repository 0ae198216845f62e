// What htmx leaves to the page: an honest word about the connection, times in the reader's own zone, a mark on what is
// new, and announcements that do not chatter. The swapping itself is htmx's, from the attributes of #board.
"use strict";

(() => {
  const SILENCE_MS = 45_000; // three pulses of the server went missing
  const WATCH_MS = 5_000;
  const RETRY_MS = 2_000;
  const ANNOUNCE_MS = 5_000;
  const WORDS = {
    connecting: "Connecting…",
    live: "Live",
    reconnecting: "Reconnecting…",
    stalled: "Standing still: data cannot be read",
  };

  const board = document.getElementById("board");
  const link = document.getElementById("link");
  const announcer = document.getElementById("announcer");
  let connection = null;
  let heardAt = Date.now();
  let known = rows();
  let announcing = 0;
  let retrying = 0;

  function say(state) {
    link.hidden = false;
    if (link.dataset.state === state) return;
    link.dataset.state = state;
    link.querySelector(".text").textContent = WORDS[state];
  }

  function rows() {
    return new Set(Array.from(board.querySelectorAll("#lines > tr"), (row) => row.id));
  }

  function markArrivals() {
    const now = rows();
    for (const id of now) if (!known.has(id)) document.getElementById(id).dataset.arrived = "";
    known = now;
  }

  function announce() {
    announcing ||= setTimeout(() => {
      announcing = 0;
      announcer.textContent = board.querySelector("[data-summary]")?.dataset.summary ?? "";
    }, ANNOUNCE_MS);
  }

  // htmx reconnects a stream that broke, but gives up on one that never opened.
  function retry() {
    say("reconnecting");
    retrying ||= setTimeout(() => {
      retrying = 0;
      htmx.trigger(board, "retry");
    }, RETRY_MS);
  }

  // A network that vanished without a goodbye leaves a stream that is open and dead.
  function watch() {
    if (document.hidden || link.dataset.state !== "live" || Date.now() - heardAt < SILENCE_MS) return;
    say("reconnecting");
    connection?.reader?.cancel();
  }

  board.addEventListener("htmx:sse:before:connection", (event) => {
    connection = event.detail.connection;
    if (connection.attempt > 0) say("reconnecting");
  });
  board.addEventListener("htmx:sse:before:message", () => { heardAt = Date.now(); });
  board.addEventListener("htmx:sse:after:message", (event) => {
    if (event.detail.message.event) return;
    say("live");
    markArrivals();
    announce();
  });
  board.addEventListener("stalled", () => say("stalled"));
  board.addEventListener("htmx:sse:error", () => say("reconnecting"));
  for (const failure of ["htmx:error", "htmx:response:error", "htmx:sse:close"]) board.addEventListener(failure, retry);
  setInterval(watch, WATCH_MS);
  link.hidden = false;

  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
  const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

  // The shadow holds the local time; the text inside, which htmx compares with the server's, stays as it came.
  class LocalTime extends HTMLElement {
    static observedAttributes = ["at"];
    #shadow = this.attachShadow({ mode: "open" });

    attributeChangedCallback() {
      const moment = new Date(this.getAttribute("at"));
      const today = moment.toDateString() === new Date().toDateString();
      this.#shadow.textContent = (today ? clock : date).format(moment);
    }
  }
  customElements.define("local-time", LocalTime);
})();
