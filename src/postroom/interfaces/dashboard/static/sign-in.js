// Passkeys, and the secret of a one-time link. Everything else on these pages works without a script.
"use strict";

const toBytes = (text) => {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (char) => char.charCodeAt(0));
};

const toText = (buffer) => {
  let plain = "";
  for (const byte of new Uint8Array(buffer)) plain += String.fromCharCode(byte);
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
};

const send = async (address, content) => {
  const response = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(content),
  });
  let answer = {};
  try {
    answer = await response.json();
  } catch {
    // A refusal without JSON: the status says enough.
  }
  if (response.status === 401 && answer.to) {
    location.assign(answer.to);
    return null;
  }
  if (!response.ok) throw new Error(answer.error || "That did not work. Open the page again and try once more.");
  return answer;
};

const withBytes = (options) => {
  const known = (list) => (list || []).map((each) => ({ ...each, id: toBytes(each.id) }));
  const whole = { ...options, challenge: toBytes(options.challenge) };
  if (options.user) whole.user = { ...options.user, id: toBytes(options.user.id) };
  if (options.allowCredentials) whole.allowCredentials = known(options.allowCredentials);
  if (options.excludeCredentials) whole.excludeCredentials = known(options.excludeCredentials);
  return whole;
};

const asJson = (credential) => {
  const response = { clientDataJSON: toText(credential.response.clientDataJSON) };
  for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = toText(credential.response[name]);
  }
  return { id: credential.id, rawId: toText(credential.rawId), type: credential.type, response, clientExtensionResults: {} };
};

const usePasskey = async (form) => {
  const fields = Object.fromEntries(new FormData(form));
  delete fields.password;
  delete fields.kept;
  const options = await send(form.dataset.options, fields);
  if (options === null) return;
  const publicKey = withBytes(options);
  const create = form.dataset.passkey === "create";
  const credential = create
    ? await navigator.credentials.create({ publicKey })
    : await navigator.credentials.get({ publicKey });
  const answer = await send(form.dataset.answer, { ...fields, credential: asJson(credential) });
  if (answer === null) return;
  // A form that was sent before is carried out now, which may show a page of its own.
  if (form.elements.namedItem("kept")) form.submit();
  else location.assign(answer.to);
};

const say = (form, problem) => {
  const place = form.querySelector("[data-problem]");
  place.textContent = problem;
  place.hidden = problem === "";
};

const start = async (form, button) => {
  say(form, "");
  button.disabled = true;
  try {
    await usePasskey(form);
  } catch (error) {
    const given_up = error.name === "NotAllowedError" || error.name === "AbortError";
    say(form, given_up ? "No passkey was used. Try again, or sign in another way." : error.message);
  } finally {
    button.disabled = false;
  }
};

if (window.PublicKeyCredential) {
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const own = form.querySelector("[data-passkey-button]");
    form.hidden = false;
    if (own) {
      own.hidden = false;
      own.addEventListener("click", () => {
        const name = form.querySelector("[name=name]");
        if (name.reportValidity()) start(form, own);
      });
    } else {
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        start(form, form.querySelector("button"));
      });
    }
  }
  for (const each of document.querySelectorAll("[data-scripted]")) each.hidden = false;
}

const once = document.querySelector("form[data-once]");
if (once && location.hash.length > 1) {
  once.elements.secret.value = decodeURIComponent(location.hash.slice(1));
  once.querySelector("[data-once-field]").hidden = true;
  once.querySelector("[data-once-found]").hidden = false;
  // Out of the address, so that it is not in the history or on somebody's screen.
  history.replaceState(null, "", location.pathname);
}
