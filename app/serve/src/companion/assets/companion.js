"use strict";
// Keeps pages live and sends what was captured offline. Everything else works without it.
(() => {
  const RETRY_MILLIS = 20_000;
  const ANNOUNCE_MILLIS = 150;
  const TEXT_TIMEOUT_MILLIS = 30_000;
  const PHOTO_TIMEOUT_MILLIS = 150_000;
  const MAX_PHOTO_BYTES = 16 * 1024 * 1024;
  // What may wait on this device.
  const MAX_WAITING = 100;
  const MAX_WAITING_BYTES = 200 * 1024 * 1024;
  // Where earlier versions kept texts.
  const EARLIER_PREFIX = "tracebook-capture:";
  const PAIR = { url: "/pair", text: "Pair this browser" };
  const form = document.getElementById("capture-form");
  const status = document.getElementById("capture-status");
  const keptSection = document.getElementById("capture-kept");
  const connection = document.getElementById("connection");

  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // The same words aren't announced again.
  const say = (element, text, link) => {
    const whole = link ? `${text} ${link.text}` : text;
    if (!element || element.textContent === whole) return;
    element.textContent = text;
    if (link) element.append(" ", make("a", { href: link.url, textContent: link.text }));
  };

  // A region is announced only if its text appears while the region is there already.
  const announce = (region) => {
    const nodes = Array.from(region.childNodes);
    region.style.minHeight = getComputedStyle(region).height;
    region.replaceChildren();
    setTimeout(() => {
      region.append(...nodes);
      region.removeAttribute("style");
    }, ANNOUNCE_MILLIS);
  };

  // Requests. An error with a `status` is an answer of the server; one without means that it wasn't reached.
  const failure = (message, more) => Object.assign(new Error(message), more);
  const ask = async (path, field, millis, options) => {
    const signal = AbortSignal.timeout ? AbortSignal.timeout(millis) : undefined;
    const answer = await fetch(path, { ...options, signal, headers: { Accept: "application/json" } });
    const text = await answer.text();
    if (!answer.ok) {
      const page = new DOMParser().parseFromString(text, "text/html");
      const words = page.querySelector(".problem, .message.bad");
      throw failure(words ? words.textContent.trim() : `The server answered ${answer.status}.`, { status: answer.status });
    }
    try {
      const value = JSON.parse(text);
      if (typeof value[field] === "string") return value;
    } catch {
      // It isn't the server's, as below.
    }
    throw failure("Another page answered in place of the server. Sign in to this network, or join another one.", { isForeign: true });
  };
  const formToken = async () => (await ask("/capture/form-token", "form_token", TEXT_TIMEOUT_MILLIS)).form_token;
  const post = (data, hasPhoto) =>
    ask("/capture", "path", hasPhoto ? PHOTO_TIMEOUT_MILLIS : TEXT_TIMEOUT_MILLIS, { method: "POST", body: data });

  // Captures that wait, in the browser's database: a reload or another tab loses none.
  let database = null;
  const openDatabase = () => new Promise((good, bad) => {
    const request = indexedDB.open("tracebook", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("captures", { keyPath: "key" });
    request.onerror = () => bad(request.error);
    request.onsuccess = () => {
      request.result.onclose = () => { database = null; };
      good(request.result);
    };
  });
  const inStore = async (mode, work) => {
    database = database || openDatabase();
    let opened;
    try {
      opened = await database;
    } catch (error) {
      database = null;
      throw error;
    }
    return new Promise((good, bad) => {
      const change = opened.transaction("captures", mode, { durability: "strict" });
      const request = work(change.objectStore("captures"));
      change.oncomplete = () => good(request.result);
      change.onabort = () => bad(change.error || failure("The browser stopped it."));
    });
  };
  const allKept = async () => (await inStore("readonly", (store) => store.getAll())).sort((a, b) => a.at - b.at);
  const drop = (key) => inStore("readwrite", (store) => store.delete(key));
  // Changes a capture, unless it was deleted meanwhile.
  const amend = (key, changes) => inStore("readwrite", (store) => {
    const request = store.get(key);
    request.onsuccess = () => { if (request.result) store.put({ ...request.result, ...changes }); };
    return request;
  });
  const entry = (key, at, text, photo, photoName) =>
    ({ key, at, text, photo, photoName, bytes: new Blob([text]).size + (photo ? photo.size : 0), trouble: "", isRefused: false });

  const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const keep = async (key, text, photo) => {
    // A copy, since the camera may take its file away.
    const copy = photo ? new Blob([await photo.arrayBuffer()], { type: photo.type }) : null;
    const made = entry(key, Date.now(), text, copy, photo ? photo.name : "");
    const kept = await allKept();
    const bytes = kept.reduce((sum, capture) => sum + capture.bytes, made.bytes);
    if (kept.length >= MAX_WAITING || bytes > MAX_WAITING_BYTES) {
      throw failure(`At most ${MAX_WAITING} captures and ${MAX_WAITING_BYTES / 1024 / 1024} MB wait here. Connect to the server first.`);
    }
    await inStore("readwrite", (store) => store.put(made));
    // Without the browser's promise they're kept, too, as long as it has room.
    if (navigator.storage && navigator.storage.persist) navigator.storage.persist().catch(() => {});
  };
  const takeOverEarlier = async () => {
    for (const name of Object.keys(localStorage).filter((name) => name.startsWith(EARLIER_PREFIX))) {
      let earlier = {};
      try {
        earlier = JSON.parse(localStorage.getItem(name)) || {};
      } catch {
        // It isn't one of ours.
      }
      const { key, text, at } = earlier;
      if (typeof key !== "string" || typeof text !== "string") continue;
      await inStore("readwrite", (store) => store.put(entry(key, at || 0, text, null, "")));
      localStorage.removeItem(name);
    }
  };

  // What couldn't be added, and why: to copy, to try again, or to delete.
  const keptRow = (capture) => {
    const text = make("textarea", { readOnly: true, rows: 3, value: capture.text, ariaLabel: "Text of the capture" });
    const buttons = make("div", { className: "row" });
    const addButton = (name, work) => {
      const button = make("button", { type: "button", textContent: name });
      button.addEventListener("click", () => work(button).catch((error) => say(status, `It didn't work: ${error.message}`)));
      buttons.append(button);
    };
    addButton("Try again", async () => {
      await amend(capture.key, { trouble: "", isRefused: false });
      form.elements.text.focus();
      await sendWaiting();
    });
    if (capture.text !== "") {
      addButton("Copy text", async () => {
        try {
          await navigator.clipboard.writeText(capture.text);
          say(status, "The text was copied.");
        } catch {
          text.focus();
          text.select();
          say(status, "The text is selected. Copy it.");
        }
      });
    }
    if (capture.photo) {
      const href = URL.createObjectURL(capture.photo);
      buttons.append(make("a", { className: "button", href, download: capture.photoName || "photo", textContent: "Save photo" }));
    }
    addButton("Delete", async (button) => {
      if (button.textContent === "Delete") {
        button.textContent = "Delete for good";
        return;
      }
      await drop(capture.key);
      form.elements.text.focus();
      showKept(await allKept());
      say(status, "The capture was deleted.");
    });
    const parts = [make("p", { textContent: capture.trouble })];
    if (capture.text !== "") parts.push(text);
    if (capture.photo) parts.push(make("p", { className: "muted", textContent: capture.photoName || "Photo" }));
    return make("li", {}, ...parts, buttons);
  };
  let shownKept = "[]";
  const showKept = (kept) => {
    if (!keptSection) return;
    const troubled = kept.filter((capture) => capture.trouble !== "");
    const now = JSON.stringify(troubled.map(({ key, trouble, isRefused }) => [key, trouble, isRefused]));
    if (now === shownKept) return;
    shownKept = now;
    keptSection.hidden = troubled.length === 0;
    const list = make("ul", { className: "entries" }, ...troubled.map(keptRow));
    keptSection.replaceChildren(make("h2", { textContent: "Not added" }), list);
  };

  const captures = (count) => (count === 1 ? "1 capture" : `${count} captures`);
  // Says how the captures on this device stand, after `trouble` if there was any.
  const sayStanding = async (sent, trouble) => {
    const kept = await allKept();
    showKept(kept);
    const waiting = kept.filter((capture) => !capture.isRefused).length;
    const said = [];
    let link;
    if (sent > 0) said.push(`${captures(sent)} ${sent === 1 ? "was" : "were"} sent.`);
    if (waiting > 0) {
      const wait = `${captures(waiting)} ${waiting === 1 ? "waits" : "wait"} on this device`;
      if (trouble && trouble.status === 401) {
        said.push(`This browser isn't paired. ${wait}.`);
        link = PAIR;
      } else if (trouble && (trouble.status || trouble.isForeign)) {
        said.push(trouble.message, `${wait} and ${waiting === 1 ? "is" : "are"} sent later.`);
      } else {
        said.push(trouble ? `${wait} until the server can be reached.` : `${wait}.`);
      }
    }
    if (kept.length > waiting) said.push(`${captures(kept.length - waiting)} couldn't be added: see below.`);
    if (said.length > 0) say(status, said.join(" "), link);
  };

  const dataOf = (capture, token) => {
    const data = new FormData();
    data.set("form_token", token);
    data.set("key", capture.key);
    data.set("text", capture.text);
    if (capture.photo) data.set("photo", capture.photo, capture.photoName || "photo");
    return data;
  };
  // Sends what waits. What the server refuses is marked, and the rest goes on.
  const sendAll = async () => {
    await takeOverEarlier();
    const kept = await allKept();
    const queue = kept.filter((capture) => !capture.isRefused);
    let sent = 0;
    let trouble = null;
    try {
      const token = queue.length > 0 ? await formToken() : "";
      for (const capture of queue) {
        try {
          await post(dataOf(capture, token), Boolean(capture.photo));
        } catch (error) {
          // These are about all captures; the others about this one.
          if (!error.status || error.status === 401 || error.status === 429) throw error;
          const isRefused = error.status < 500 && error.status !== 408;
          await amend(capture.key, { trouble: error.message, isRefused });
          if (!isRefused) trouble = error;
          continue;
        }
        await drop(capture.key);
        sent += 1;
      }
    } catch (error) {
      trouble = error;
    }
    return { sent, trouble, hadWork: queue.length > 0 };
  };

  let isSending = false;
  let isWanted = false;
  let isFirst = true;
  const sendWaiting = async () => {
    isWanted = true;
    if (isSending) return;
    isSending = true;
    try {
      while (isWanted) {
        isWanted = false;
        const { sent, trouble, hadWork } = await sendAll();
        if (hadWork || isFirst) await sayStanding(sent, trouble);
        isFirst = false;
        const isEmpty = form && form.elements.text.value === "" && (!form.elements.photo || form.elements.photo.files.length === 0);
        if (form && form.dataset.offline && sent > 0 && !trouble && isEmpty) location.assign("/");
      }
    } catch (error) {
      say(status, `This browser can't read the captures that wait on this device: ${error.message}`);
    } finally {
      isSending = false;
    }
  };

  const submit = async (event) => {
    event.preventDefault();
    const field = form.elements.text;
    const text = field.value;
    const photo = (form.elements.photo && form.elements.photo.files[0]) || null;
    if (photo && photo.size > MAX_PHOTO_BYTES) return say(status, "The photo is too large. At most 16 MB are taken.");
    if (text.trim() === "" && !photo) return say(status, "Type a text or choose a photo.");
    const data = new FormData(form);
    const key = String(data.get("key") || newKey());
    data.set("key", key);
    const clear = () => {
      if (field.value === text) form.reset();
      if (form.elements.key) form.elements.key.value = newKey();
      showChosen();
      field.focus();
    };
    const keepForLater = async (trouble) => {
      try {
        await keep(key, text, photo);
      } catch (error) {
        return say(status, `This device can't keep the capture: ${error.message}`);
      }
      clear();
      if (trouble) return sayStanding(0, trouble);
      await sendWaiting();
    };
    if (form.dataset.offline) return keepForLater(null);
    say(status, "Adding…");
    try {
      const note = await post(data, Boolean(photo));
      clear();
      say(status, "Added to", { url: note.url, text: note.path.split("/").pop().replace(/\.md$/, "") });
      refreshSoon();
    } catch (error) {
      // What the server refuses stays in the form.
      if (error.status && error.status !== 401) return say(status, error.message);
      await keepForLater(error);
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

  // What has the focus, so that a key pressed next does what it would have done.
  const focusables = () => Array.from(live.querySelectorAll("a[href], button, summary, input, select, textarea, [tabindex]"));
  const focusName = (element) =>
    [element.tagName, element.ariaLabel || element.textContent, element.getAttribute("href"), element.value, element.form && element.form.action].join("\n");
  const focusPlace = () => {
    const focused = document.activeElement;
    if (!live.contains(focused)) return null;
    const name = focusName(focused);
    return { name, number: focusables().filter((element) => focusName(element) === name).indexOf(focused) };
  };
  const restoreFocus = (place) => {
    const same = focusables().filter((element) => focusName(element) === place.name);
    const next = same[Math.min(place.number, same.length - 1)] || document.getElementById("page-content");
    if (next) next.focus({ preventScroll: true });
  };

  let received = live ? live.innerHTML : "";
  const refresh = async () => {
    if (!live || isReading) return;
    if (isBusy() || isTyped()) return refreshSoon(2_000);
    isReading = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      if (next && next.innerHTML !== received) {
        received = next.innerHTML;
        const name = (details) => (details.querySelector("summary") || details).textContent;
        const opened = new Map(Array.from(live.querySelectorAll("details"), (details, at) => [`${at} ${name(details)}`, details.open]));
        const regions = () => Array.from(live.querySelectorAll("[role=status]"));
        const said = new Set(regions().map((region) => region.textContent));
        const place = focusPlace();
        live.replaceChildren(...next.childNodes);
        live.querySelectorAll("details").forEach((details, at) => {
          const wasOpen = opened.get(`${at} ${name(details)}`);
          if (wasOpen !== undefined) details.open = wasOpen;
        });
        makeScrollable();
        if (place) restoreFocus(place);
        regions().filter((region) => !said.has(region.textContent)).forEach(announce);
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
    stream.addEventListener("error", sayConnection);
  };
  // A stream doesn't say why it ended, and one that was refused isn't opened again by itself.
  const sayConnection = async () => {
    let isPaired = true;
    try {
      await formToken();
    } catch (error) {
      isPaired = error.status !== 401;
      if (!isPaired) say(connection, "This browser isn't paired any more. What you see may be old.", PAIR);
      else if (error.status || error.isForeign) say(connection, error.message);
      else say(connection, "The server can't be reached. What you see may be old.");
    }
    if (isPaired && stream && stream.readyState === EventSource.CLOSED) {
      close();
      setTimeout(listen, RETRY_MILLIS);
    }
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
  document.querySelectorAll("main .message[role=status]").forEach(announce);
  if (live && live.dataset.running === "true") refreshSoon(1_000);
  if ("serviceWorker" in navigator) navigator.serviceWorker.register("/service-worker.js").catch(() => {});
})();
