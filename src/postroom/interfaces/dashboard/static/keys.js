// The keyboard: j and k move through rows, a letter presses the button that shows it, g and a letter opens a page,
// / searches, ? lists the keys, Ctrl-K opens the palette of everything that can be done from here.
"use strict";

(() => {
  const SEQUENCE_MS = 1_500;
  const MOST_OFFERED = 60;
  const ROWS = "[data-row]";
  const FIELDS = "input, textarea, select, [contenteditable]";
  const FIXED = [["j", "next row"], ["k", "previous row"], ["Enter", "open"], ["/", "search"], ["Ctrl K", "everything that can be done"], ["?", "this list"]];

  const board = document.getElementById("board");
  const palette = document.getElementById("palette");
  const help = document.getElementById("help");
  const command = document.getElementById("command");
  const list = document.getElementById("commands");
  let goingUntil = 0;
  let marked = 0;
  let shown = []; // what the palette offers

  const label = (element) => {
    const copy = element.cloneNode(true);
    for (const key of copy.querySelectorAll("kbd, .count")) key.remove();
    return copy.textContent.trim().replace(/\s+/g, " ");
  };
  const chosen = () => board.querySelector(`${ROWS}[data-chosen]`);
  const visible = (element) => element.checkVisibility();

  function choose(step) {
    const rows = [...board.querySelectorAll(ROWS)].filter(visible);
    if (rows.length === 0) return false;
    const at = rows.indexOf(chosen());
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step))];
    if (next === chosen()) return false;
    chosen()?.removeAttribute("data-chosen");
    next.setAttribute("data-chosen", "");
    (next.querySelector("a[href]") ?? next).focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
    return true;
  }

  // The button of the chosen row first, then one that belongs to the whole page. The message that is opened beside the list
  // is meant only while its row is the chosen one.
  function press(key) {
    const matching = (within) => [...within.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find(visible);
    const row = chosen();
    const button = (row && matching(row)) ?? [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)]
      .find((each) => visible(each) && !each.closest(ROWS) && !(row && !row.ariaCurrent && each.closest("#opened")));
    button?.click();
    return Boolean(button);
  }

  // Acted upon in place (triage.js): on to the next row, or from the last one back.
  board.addEventListener("acted", (event) => { if (event.target === chosen() && !choose(1)) choose(-1); });

  function describeKeys() {
    const own = new Map();
    for (const each of document.querySelectorAll("[data-key]")) own.set(each.dataset.key, label(each).toLowerCase());
    const pages = [...document.querySelectorAll("[data-go]")].map((each) => [`g ${each.dataset.go}`, `go to ${label(each)}`]);
    const lines = [...FIXED, ...own, ...pages].map(([keys, text]) => {
      const line = document.createElement("li");
      const said = document.createElement("span");
      said.textContent = text;
      const shown = document.createElement("span");
      for (const key of keys.split(" ")) {
        const cap = document.createElement("kbd");
        cap.textContent = key;
        shown.append(cap, " ");
      }
      line.append(said, shown);
      return line;
    });
    document.getElementById("keys").replaceChildren(...lines);
  }

  function offers() {
    const typed = command.value.trim();
    const words = typed.toLowerCase();
    const matches = (text) => words.split(/\s+/).every((word) => text.toLowerCase().includes(word));
    const row = [...(chosen()?.querySelectorAll("button, a.btn") ?? [])].filter((each) => visible(each) && !each.closest("[popover]"))
      .map((each) => ({ element: each, text: `${label(each)} the chosen row`, run: () => each.click() }));
    const buttons = [...board.querySelectorAll("button, a.btn, summary")].filter((each) => visible(each) && !each.closest("[popover]") && !each.closest(ROWS))
      .map((each) => ({ element: each, text: label(each), run: () => { each.focus(); each.click(); } }));
    const everywhere = [...palette.querySelectorAll("[data-command]")].filter((each) => each.pathname !== location.pathname || each.hash)
      .map((each) => ({ text: label(each), run: () => each.click() }));
    const own = [{ text: "Print this page", run: () => print() }, { text: "Show all shortcuts", run: () => help.showPopover() }];
    const pages = [...document.querySelectorAll("[data-go]")].map((each) => ({ text: `Go to ${label(each)}`, run: () => each.click() }));
    const found = [...row, ...buttons, ...pages, ...everywhere, ...own].filter((each) => each.text && matches(each.text)).slice(0, MOST_OFFERED);
    if (typed) found.push({ text: `Search mail for “${typed}”`, run: () => location.assign(`/mail?q=${encodeURIComponent(typed)}`) });
    return found;
  }

  function showOffers() {
    shown = offers();
    marked = Math.max(0, Math.min(marked, shown.length - 1));
    list.replaceChildren(...shown.map((each, index) => {
      const line = document.createElement("li");
      line.role = "option";
      line.id = `command-${index}`;
      line.textContent = each.text;
      line.ariaSelected = String(index === marked);
      line.addEventListener("click", () => run(each));
      return line;
    }));
    list.children[marked]?.scrollIntoView({ block: "nearest" });
    command.setAttribute("aria-activedescendant", shown.length ? `command-${marked}` : "");
  }

  // Do what was shown: an update since then may have put other things in its place, which are shown first.
  function run(offer) {
    const isThere = offers().some((each) => each.text === offer?.text && each.element === offer.element);
    if (!isThere) return showOffers();
    palette.hidePopover();
    offer.run();
  }

  command.addEventListener("input", () => { marked = 0; showOffers(); });
  command.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      marked += event.key === "ArrowDown" ? 1 : -1;
      showOffers();
      event.preventDefault();
    } else if (event.key === "Enter") {
      run(shown[marked]);
      event.preventDefault();
    }
  });
  palette.addEventListener("beforetoggle", (event) => {
    if (event.newState !== "open") return;
    command.value = "";
    marked = 0;
    showOffers();
  });
  help.addEventListener("beforetoggle", describeKeys);

  // A command of another page names its dialogs in the address: the first that the page has is opened, once.
  function openAsked() {
    const names = location.hash.match(/^#do-([a-z,-]+)$/)?.[1].split(",") ?? [];
    if (names.length) history.replaceState(null, "", location.pathname + location.search);
    names.map((name) => board.querySelector(`.dialog[id="${name}"]`)).find(Boolean)?.showPopover();
  }
  addEventListener("hashchange", openAsked);
  openAsked();

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      palette.togglePopover();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(FIELDS)) return;
    if (document.querySelector("[popover]:popover-open")) return;
    const key = event.key;
    // A key that is held down moves through the rows; it must not act on one after the other.
    if (event.repeat && key !== "j" && key !== "k") return;
    const isGoing = Date.now() < goingUntil;
    goingUntil = 0;
    let used = true;
    if (isGoing && document.querySelector(`[data-go="${CSS.escape(key)}"]`)) document.querySelector(`[data-go="${CSS.escape(key)}"]`).click();
    else if (key === "j" || key === "k") choose(key === "j" ? 1 : -1);
    else if (key === "/") document.getElementById("search").focus();
    else if (key === "?") help.showPopover();
    else if (key === "g") goingUntil = Date.now() + SEQUENCE_MS;
    else used = key.length === 1 && press(key);
    if (used) event.preventDefault();
  });
})();
