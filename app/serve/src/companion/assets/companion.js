"use strict";
// Keeps pages live and sends what was captured offline. Everything else works without it.
(() => {
  const PREFIX = "tracebook-capture:";
  const RETRY_MILLIS = 20_000;
  const MAX_PHOTO_BYTES = 16 * 1024 * 1024;
  const form = document.getElementById("capture-form");
  const status = document.getElementById("capture-status");
  const connection = document.getElementById("connection");

  const say = (element, text, link) => {
    if (!element) return;
    element.textContent = text;
    element.hidden = text === "";
    if (link) {
      const anchor = document.createElement("a");
      anchor.href = link.url;
      anchor.textContent = link.text;
      element.append(" ", anchor);
    }
  };

  // Captures that wait: one entry each, so that two tabs can't overwrite each other's.
  const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const waiting = () => Object.keys(localStorage).filter((name) => name.startsWith(PREFIX)).sort();
  const keep = (key, text) => localStorage.setItem(PREFIX + key, JSON.stringify({ key, text, at: Date.now() }));
  const sayWaiting = () => {
    const count = waiting().length;
    if (count > 0) say(status, `${count === 1 ? "1 capture waits" : `${count} captures wait`} on this device until the server can be reached.`);
  };

  const post = async (data) => {
    const answer = await fetch("/capture", { method: "POST", body: data, headers: { Accept: "application/json" } });
    if (answer.ok) return answer.json();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const words = page.querySelector(".problem, .message");
    const error = new Error(words ? words.textContent.trim() : `The server answered ${answer.status}.`);
    error.isAnswer = true;
    throw error;
  };

  let isSending = false;
  const sendWaiting = async () => {
    if (isSending || waiting().length === 0) return;
    isSending = true;
    let sent = 0;
    try {
      const answer = await fetch("/capture/form-token", { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error("not paired");
      const { form_token: token } = await answer.json();
      for (const name of waiting()) {
        const { key, text } = JSON.parse(localStorage.getItem(name) || "{}");
        if (!key) continue;
        const data = new FormData();
        data.set("form_token", token);
        data.set("key", key);
        data.set("text", text);
        await post(data);
        localStorage.removeItem(name);
        sent += 1;
      }
      say(status, sent === 1 ? "1 capture was sent." : `${sent} captures were sent.`);
      if (form && form.dataset.offline) location.assign("/");
    } catch {
      sayWaiting();
    } finally {
      isSending = false;
    }
  };

  const submit = async (event) => {
    event.preventDefault();
    const text = form.elements.text;
    const photo = form.elements.photo;
    const hasPhoto = Boolean(photo && photo.files.length > 0);
    if (hasPhoto && photo.files[0].size > MAX_PHOTO_BYTES) return say(status, "The photo is too large. At most 16 MB are taken.");
    if (text.value.trim() === "" && !hasPhoto) return say(status, "Type a text or choose a photo.");
    const data = new FormData(form);
    const key = String(data.get("key") || newKey());
    data.set("key", key);
    const clear = () => {
      form.reset();
      if (form.elements.key) form.elements.key.value = newKey();
      showChosen();
      text.focus();
    };
    if (form.dataset.offline) {
      keep(newKey(), text.value);
      clear();
      sayWaiting();
      return sendWaiting();
    }
    say(status, "Adding…");
    try {
      const note = await post(data);
      clear();
      say(status, "Added to", { url: note.url, text: note.path.split("/").pop().replace(/\.md$/, "") });
      refreshSoon();
    } catch (error) {
      if (error.isAnswer) return say(status, error.message);
      if (hasPhoto) return say(status, "The photo could not be sent. Try again when the server can be reached.");
      keep(key, text.value);
      clear();
      sayWaiting();
    }
  };

  const showChosen = () => {
    const photo = form && form.elements.photo;
    const chosen = document.getElementById("capture-chosen");
    if (photo && chosen) chosen.textContent = photo.files.length > 0 ? photo.files[0].name : "";
  };

  if (form) {
    form.addEventListener("submit", submit);
    if (form.elements.photo) form.elements.photo.addEventListener("change", showChosen);
    sayWaiting();
  }
  addEventListener("online", sendWaiting);
  setInterval(sendWaiting, RETRY_MILLIS);
  sendWaiting();

  // Live pages: an event says that something changed, and the part is read again.
  const live = document.getElementById("live");
  const RUN_KINDS = ["USER_INPUT", "LLM_OUTPUT", "TOOL_OUTPUT", "TOOL_CALL", "TODO", "ERROR", "RUN_BEGAN", "RUN_ENDED", "PHASE", "ASKED"];
  let timer = 0;
  let isReading = false;

  const isBusy = () => live.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
  const isTyped = () => Array.from(live.querySelectorAll("input[name=comment]")).some((field) => field.value !== "");
  const makeScrollable = () => {
    for (const box of document.querySelectorAll("pre, .table, math[display=block]")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    }
  };

  const refresh = async () => {
    if (!live || isReading) return;
    if (isBusy() || isTyped()) return refreshSoon(2_000);
    isReading = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      if (next && next.innerHTML !== live.innerHTML) {
        const name = (details) => (details.querySelector("summary") || details).textContent;
        const opened = new Map(Array.from(live.querySelectorAll("details"), (details, at) => [`${at} ${name(details)}`, details.open]));
        live.replaceChildren(...next.childNodes);
        live.querySelectorAll("details").forEach((details, at) => {
          const wasOpen = opened.get(`${at} ${name(details)}`);
          if (wasOpen !== undefined) details.open = wasOpen;
        });
        makeScrollable();
      }
      if (next) live.dataset.running = next.dataset.running || "false";
      if (live.dataset.running === "true") refreshSoon(1_000);
    } catch {
      // The stream says when the server can be reached again.
    } finally {
      isReading = false;
    }
  };

  function refreshSoon(millis = 250) {
    clearTimeout(timer);
    timer = setTimeout(refresh, millis);
  }

  const concerns = (kind, data) => {
    switch (live.dataset.live) {
      case "note": return kind === "FILE_CHANGED" && data.path === live.dataset.path;
      case "files": return kind === "FILE_CHANGED";
      case "run": return data.run === live.dataset.run;
      default: return true;
    }
  };

  let stream = null;
  const listen = () => {
    if (!live || stream || document.hidden) return;
    stream = new EventSource("/live");
    for (const kind of [...RUN_KINDS, "FILE_CHANGED"]) {
      stream.addEventListener(kind, (event) => {
        if (concerns(kind, JSON.parse(event.data))) refreshSoon();
      });
    }
    stream.addEventListener("GAP", () => refreshSoon());
    stream.addEventListener("open", () => {
      say(connection, "");
      sendWaiting();
    });
    stream.addEventListener("error", () => {
      say(connection, "The server can't be reached. What you see may be old.");
    });
  };
  const close = () => {
    if (stream) stream.close();
    stream = null;
  };
  // A component's frame asks for a value by its name; it gets those that the page has for it.
  const frame = document.querySelector("iframe.component");
  if (frame) {
    const values = JSON.parse(frame.dataset.values || "{}") || {};
    addEventListener("message", (event) => {
      const asked = event.data;
      if (event.source !== frame.contentWindow || !asked || asked.type !== "value") return;
      const value = Object.hasOwn(values, asked.name) ? values[asked.name] : undefined;
      frame.contentWindow.postMessage({ id: asked.id, value }, "*");
    });
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    listen();
    refreshSoon();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", listen);
  listen();
  makeScrollable();
  if (live && live.dataset.running === "true") refreshSoon(1_000);
  if ("serviceWorker" in navigator) navigator.serviceWorker.register("/service-worker.js").catch(() => {});
})();
