// The empty shell asks again until Postroom answers, and then opens the page that was asked for.
"use strict";

const EVERY_MS = 3_000;

async function tryAgain() {
  try {
    const answer = await fetch("/healthz", { cache: "no-store", credentials: "omit" });
    if (!answer.ok) return;
    clearInterval(trying);
    location.reload();
  } catch {
    // Still unreachable.
  }
}

const trying = setInterval(tryAgain, EVERY_MS);
window.addEventListener("online", tryAgain);
document.addEventListener("visibilitychange", () => { if (!document.hidden) tryAgain(); });
