// What a component can call: `await tracebook.value(name)` gives a property that its file names, or undefined.
(() => {
  "use strict";
  // The content policy doesn't cover it.
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport"]) {
    Object.defineProperty(window, name, { value: undefined });
  }
  const tag = document.currentScript.dataset.tag;
  const waiting = new Map();
  let last = 0;
  addEventListener("message", (event) => {
    if (event.source !== parent || !event.data) return;
    const resolve = waiting.get(event.data.id);
    if (!resolve) return;
    waiting.delete(event.data.id);
    resolve(event.data.value);
  });
  const value = (name) => new Promise((resolve) => {
    const id = ++last;
    waiting.set(id, resolve);
    parent.postMessage({ type: "value", id, name: String(name) }, "*");
  });
  Object.defineProperty(window, "tracebook", { value: Object.freeze({ value }) });
  const say = (words) => {
    const note = document.createElement("p");
    note.className = "component-problem";
    note.setAttribute("role", "alert");
    note.textContent = words;
    document.body.append(note);
  };
  addEventListener("error", (event) => say(`The script failed: ${event.message}`));
  addEventListener("unhandledrejection", (event) => say(`The script failed: ${event.reason}`));
  Object.defineProperty(window, "tracebookEnd", {
    value: () => {
      if (!customElements.get(tag)) say(`The script doesn't define <${tag}>.`);
    },
  });
})();
