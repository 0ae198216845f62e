// Tells the server the browser's time zone, in which it draws the pages. A page that was drawn in another zone, as the
// first one may be, is loaded again before anybody sees it.
"use strict";

(() => {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const cookie = `postroom-zone=${timeZone}`;
  const isKnown = () => document.cookie.split("; ").includes(cookie);
  if (!timeZone || isKnown()) return;
  document.cookie = `${cookie}; path=/; max-age=31536000; samesite=strict`;
  // Only a page of its own address has a board in a zone: what answers a form is not sent twice.
  const drawnIn = document.querySelector("#board[data-zone]")?.dataset.zone;
  if (isKnown() && drawnIn && drawnIn !== timeZone) location.reload();
})();
