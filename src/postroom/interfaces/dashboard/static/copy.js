// Buttons that copy a text which is shown once. A browser that does not allow it has the text selected instead.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  const text = document.getElementById(button.dataset.copy);
  const said = button.parentElement.querySelector("[role=status]");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.dataset.whole ?? text.textContent);
      said.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(text);
      said.textContent = "Selected. Copy it with Ctrl+C, or ⌘C on a Mac.";
    }
  });
}
