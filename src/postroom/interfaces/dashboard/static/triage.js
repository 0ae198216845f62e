// Lists that people work through (data-triage): an act on a row is done in place, and new rows wait while somebody is
// in the list, so that nothing moves under the pointer. On a page that never was live, forms are sent as they are.
"use strict";

(() => {
  const LISTS = "[data-triage]";
  const ROWS = `${LISTS} > [data-row]`;
  const PANELS = `.panel:has(${LISTS})`;
  const IN_PLACE = "Postroom-In-Place";
  const [SIGNED_OUT, SERVER_ERROR] = [401, 500];
  const NO_ANSWER = "Postroom did not answer. The row shows what became of it when the page is live again.";

  const board = document.getElementById("board");
  const link = document.getElementById("link");
  const said = document.getElementById("said");
  const held = document.getElementById("held");
  const acting = new Set(); // the ids of rows whose answer is on its way
  const acted = new Set();
  let latest = "";
  let place = {};

  // The rows of one list, by id.
  const rowsIn = (list) => new Map([...list.children].filter((each) => each.id).map((each) => [each.id, each]));

  async function act(form, submitter, row) {
    const id = row?.id;
    if (id && acting.has(id)) return;
    if (id) {
      acting.add(id);
      acted.add(id);
      row.ariaBusy = "true";
      row.dispatchEvent(new Event("acted", { bubbles: true }));
    }
    try {
      const body = new URLSearchParams(new FormData(form, submitter));
      const answer = await fetch(form.getAttribute("action"), { method: "POST", body, headers: { [IN_PLACE]: "1" }, keepalive: true });
      if (answer.status >= SERVER_ERROR) throw new Error(answer.statusText); // sent again, it might be done twice
      if (answer.headers.has(IN_PLACE)) said.innerHTML = await answer.text();
      else if (answer.status === SIGNED_OUT) location.reload(); // to the sign-in page, and back here after that
      else if (answer.redirected) location.assign(answer.url);
      else HTMLFormElement.prototype.submit.call(form); // not done yet: the page of the answer asks who it is, or says why not
    } catch {
      const toast = document.createElement("p");
      toast.className = "toast";
      toast.dataset.mood = "bad";
      toast.textContent = NO_ANSWER;
      said.replaceChildren(toast);
    } finally {
      acting.delete(id);
      if (id) document.getElementById(id)?.removeAttribute("aria-busy");
    }
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    const row = form.closest(ROWS);
    if (!form.matches(".act") || !(row ?? form.closest("#opened, .toast")) || link.hidden || link.dataset.state === "connecting") return;
    event.preventDefault();
    act(form, event.submitter, row);
  });

  // The second press of a double click is not meant for the row that has moved there meanwhile.
  document.addEventListener("click", (event) => {
    if (event.detail > 1 && event.target.closest(`:is(${ROWS}, .toast) .act`)) event.preventDefault();
  }, true);

  // Its panel too: what is below the list must not move either.
  const isInList = () => document.querySelector(`${PANELS}:hover, #held:hover`) || document.activeElement?.matches(`${PANELS} *, #held *`);

  // Return the board with the rows that are shown, in their order, and count those that are new.
  function withoutNew(html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    let count = 0;
    for (const list of board.querySelectorAll(LISTS)) {
      const next = fresh.content.querySelector(`#${list.id}`);
      if (!next) continue;
      const [shown, coming] = [rowsIn(list), rowsIn(next)];
      for (const [id, row] of coming) {
        if (shown.has(id) || acted.has(id)) continue; // an answer that was taken back: it is not new
        row.remove();
        count += row.hasAttribute("data-row");
      }
      for (const [id, row] of shown) {
        const newer = coming.get(id);
        const keepsOld = row.hasAttribute("data-row") ? !newer && !acted.has(id) : newer && count;
        if (keepsOld) {
          newer?.remove();
          next.append(row.cloneNode(true));
        } else if (newer) next.append(newer);
      }
    }
    return [fresh.innerHTML, count];
  }

  function offer(count) {
    if (!count) return held.replaceChildren();
    const noun = board.querySelector(LISTS)?.dataset.triage;
    const button = held.querySelector("button") ?? document.createElement("button");
    const key = document.createElement("kbd");
    key.textContent = ".";
    button.className = "btn primary";
    button.dataset.key = ".";
    button.replaceChildren(`${count} new ${noun}${count === 1 ? "" : "s"} `, key);
    if (!button.isConnected) held.append(button);
  }

  async function release() {
    if (!held.hasChildNodes()) return;
    if (held.contains(document.activeElement)) board.focus({ preventScroll: true });
    offer(0);
    await htmx.swap({ text: latest, target: board, sourceElement: board, swap: "innerMorph" });
    htmx.trigger(board, "htmx:sse:after:message", { message: {} });
  }

  // Buttons and dialogs for the selected rows name their number.
  const unnumbered = new Map();
  function countSelected() {
    const count = board.querySelectorAll(`${ROWS} input[type=checkbox]:checked`).length;
    for (const each of board.querySelectorAll("[data-selected]")) {
      if (!unnumbered.has(each.dataset.selected)) unnumbered.set(each.dataset.selected, each.textContent);
      const [one, many = one] = each.dataset.selected.split("|");
      each.textContent = count ? (count === 1 ? one : many).replace("#", count) : unnumbered.get(each.dataset.selected);
    }
  }

  board.addEventListener("change", countSelected);
  board.addEventListener("htmx:sse:after:message", countSelected);

  board.addEventListener("htmx:sse:before:message", (event) => {
    const message = event.detail.message;
    if (message.event) return;
    place = { chosen: board.querySelector(`${ROWS}[data-chosen]`)?.id, focused: document.activeElement?.closest(ROWS)?.id };
    latest = message.data;
    if (!isInList()) return offer(0);
    const [html, count] = withoutNew(latest);
    message.data = html;
    offer(count);
  });
  // A row that the update moved or made anew is still the chosen one.
  board.addEventListener("htmx:sse:after:message", () => {
    const [row, focused] = [place.chosen, place.focused].map((id) => id && document.getElementById(id));
    if (row && !board.querySelector(`${ROWS}[data-chosen]`)) row.setAttribute("data-chosen", "");
    if (focused && document.activeElement === document.body) (focused.querySelector("a[href]") ?? focused).focus({ preventScroll: true });
    place = {};
  });
  held.addEventListener("click", release);
  for (const moved of ["pointerover", "focusin", "focusout"]) {
    document.addEventListener(moved, () => setTimeout(() => { if (!isInList()) release(); }));
  }
})();
