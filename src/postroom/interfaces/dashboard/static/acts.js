// Acts of a row that need more than a press: a form that opens in the panel, over the page (data-panel), and on a phone
// the bar at the bottom with what can be done with the row whose … was pressed (data-acts).
"use strict";

(() => {
  const panel = document.getElementById("panel");

  async function open(link) {
    const back = encodeURIComponent(location.pathname + location.search);
    const answer = await fetch(`${link.dataset.panel}?back=${back}`).catch(() => null);
    if (!answer?.ok || answer.redirected) return location.assign(link.href); // as a page, or after signing in
    await htmx.swap({ text: await answer.text(), target: panel, sourceElement: panel, swap: "innerHTML" });
    panel.showPopover();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-panel]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(link);
  });

  document.addEventListener("click", (event) => {
    const row = event.target.closest("[data-acts]")?.closest("[data-row]");
    if (!row) return;
    const isOpen = row.hasAttribute("data-chosen");
    for (const each of document.querySelectorAll("[data-row][data-chosen]")) each.removeAttribute("data-chosen");
    row.toggleAttribute("data-chosen", !isOpen);
  });
})();
