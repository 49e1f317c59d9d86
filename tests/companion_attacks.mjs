// What a hostile page does to the web companion from another origin of the same browser. companion.mjs runs it.
import { createServer } from "node:http";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";

/** Runs in the hostile page: tries everything on each target, and returns what it got. */
async function attack({ targets, todo }) {
  const gained = [];
  const attempt = async (name, work) => {
    try {
      const late = new Promise((_, bad) => setTimeout(() => bad(new Error("late")), 3_000));
      const got = await Promise.race([work(), late]);
      if (got !== undefined) gained.push(`${name}: ${String(got).slice(0, 300)}`);
    } catch {
      // Refused, as it should be.
    }
  };
  const pause = (millis) => new Promise((ready) => setTimeout(ready, millis));
  const loaded = (element, address) => new Promise((good, bad) => {
    element.onload = () => good("loaded");
    element.onerror = bad;
    element[element instanceof HTMLLinkElement ? "href" : element instanceof HTMLObjectElement ? "data" : "src"] = address;
    document.body.append(element);
  });
  const formWith = (address, fields, enctype, frame) => {
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: address, enctype, target: frame });
    for (const [name, value] of Object.entries(fields)) {
      const field = document.createElement("input");
      Object.assign(field, { name, value });
      form.append(field);
    }
    document.body.append(form);
    return form;
  };
  const capture = { form_token: "", key: "hostile", text: "HOSTILE CAPTURE" };
  const multipart = () => {
    const data = new FormData();
    for (const [name, value] of Object.entries(capture)) data.set(name, value);
    return data;
  };
  const paths = ["/", "/todos", "/runs", "/notes/notes/Welcome.md", "/notes/notes/Boat/mast.png", "/capture/form-token", "/live",
    "/api/v1/volumes", "/api/v1/events", "/api/v1/openapi.json", "/assets/companion.js", "/mcp"];

  for (const target of targets) {
    const at = (path) => target + path;
    for (const path of paths) {
      for (const mode of ["cors", "no-cors"]) {
        await attempt(`${mode} ${at(path)}`, async () => {
          const answer = await fetch(at(path), { mode, credentials: "include" });
          const text = await answer.text();
          return answer.type === "opaque" && text === "" ? undefined : `${answer.status} ${text}`;
        });
      }
    }
    // Requests that a page may send without asking. Their answers can't be read; what they do is looked at outside.
    const write = (path, body) => attempt(`post ${at(path)}`, async () => {
      const answer = await fetch(at(path), { method: "POST", mode: "no-cors", credentials: "include", body });
      return answer.type === "opaque" ? undefined : answer.status;
    });
    await write("/todos", new URLSearchParams(todo));
    await write("/capture", multipart());
    await write("/sign-out", new URLSearchParams({ form_token: "" }));
    await write("/notes/notes/Boat/Solar%20on%20board.md", new URLSearchParams({ do: "run", cell: "1" }));
    await write("/api/v1/tasks", JSON.stringify({ description: "HOSTILE TASK" }));
    await write("/mcp", JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: {} }));
    await attempt("beacon", async () => { navigator.sendBeacon(at("/capture"), multipart()); });
    for (const method of ["PUT", "DELETE", "PATCH"]) {
      await attempt(`${method} ${target}`, async () => {
        const answer = await fetch(at("/api/v1/volumes/notes/notes/Welcome.md"), { method, credentials: "include", body: "HOSTILE" });
        return answer.status;
      });
    }
    // What pages embed.
    for (const path of ["/assets/icon.svg", "/notes/notes/Boat/mast.png"]) {
      await attempt(`picture ${at(path)}`, () => loaded(new Image(), at(path)));
    }
    await attempt(`script ${target}`, () => loaded(document.createElement("script"), at("/assets/companion.js")));
    await attempt(`module ${target}`, async () => { await import(at("/assets/companion.js")); return "imported"; });
    await attempt(`style ${target}`, () => {
      const link = document.createElement("link");
      link.rel = "stylesheet";
      return loaded(link, at("/assets/companion.css"));
    });
    await attempt(`object ${target}`, () => loaded(document.createElement("object"), at("/")));
    for (const path of ["/", "/capture", "/pair"]) {
      await attempt(`frame ${at(path)}`, async () => {
        const frame = document.createElement("iframe");
        frame.src = at(path);
        document.body.append(frame);
        await pause(500);
        return frame.contentWindow.document.title;
      });
    }
    // Streams, workers and windows.
    await attempt(`events ${target}`, () => new Promise((good, bad) => {
      const source = new EventSource(at("/live"), { withCredentials: true });
      source.onopen = () => good("open");
      source.onerror = bad;
    }));
    await attempt(`socket ${target}`, () => new Promise((good, bad) => {
      const socket = new WebSocket(at("/api/v1/agent").replace("http", "ws"));
      socket.onopen = () => good("open");
      socket.onerror = bad;
    }));
    await attempt(`service worker ${target}`, async () => {
      await navigator.serviceWorker.register(at("/service-worker.js"), { scope: at("/") });
      return "registered";
    });
    await attempt(`scope ${target}`, async () => {
      await navigator.serviceWorker.register("/worker.js", { scope: at("/") });
      return "registered";
    });
    await attempt(`worker ${target}`, () => new Promise((good, bad) => {
      const worker = new Worker(at("/assets/companion.js"));
      worker.onmessage = good;
      worker.onerror = bad;
    }));
    await attempt(`window ${target}`, async () => {
      const other = open(at("/"));
      await pause(1_000);
      return other.document.body.textContent;
    });
    // Forms, in frames and from a frame without an origin.
    for (const [path, fields, enctype] of [["/capture", capture, "multipart/form-data"], ["/todos", todo, "application/x-www-form-urlencoded"]]) {
      const frame = document.createElement("iframe");
      frame.name = `frame${Math.random()}`;
      document.body.append(frame);
      formWith(at(path), fields, enctype, frame.name).submit();
      const sandboxed = document.createElement("iframe");
      sandboxed.sandbox = "allow-forms allow-scripts";
      sandboxed.srcdoc = `${formWith(at(path), fields, enctype, "").outerHTML}<script>document.forms[0].submit()</script>`;
      document.body.append(sandboxed);
    }
    await pause(1_000);
  }
  return gained;
}

function files(folder) {
  const all = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(all.map((entry) => join(entry.parentPath ?? entry.path, entry.name)).sort().map((path) => [path, readFileSync(path, "base64")]));
}

/**
 * Has a hostile page attack the companion at both names of this machine, in a browser context that is paired with it at
 * both. `workspace` is the workspace's folder, `notes` the volume's, `texts` what only the companion's pages hold.
 */
export async function attackCompanion({ context, port, workspace, notes, todo, texts }) {
  const cookies = [];
  const hostile = createServer((request, response) => {
    cookies.push(request.headers.cookie ?? "");
    const isScript = request.url === "/worker.js";
    response.writeHead(200, { "Content-Type": isScript ? "text/javascript" : "text/html", "Service-Worker-Allowed": "/" });
    response.end(isScript ? "" : "<!doctype html><title>Hostile</title><body>");
  });
  await new Promise((ready) => hostile.listen(0, "127.0.0.1", ready));
  const names = ["127.0.0.1", "localhost"];
  const targets = names.map((name) => `http://${name}:${port}`);
  const log = () => ["access-log.jsonl", "access-without-token.jsonl"].map((name) =>
    readFileSync(join(workspace, name), "utf8").trim().split("\n").map((line) => JSON.parse(line)));
  const logged = log().map((entries) => entries.length);
  const [before, tokens] = [files(notes), readFileSync(join(workspace, "access-tokens.json"), "utf8")];
  const holdsNothing = (where, text) => {
    for (const secret of texts) assert(!text.includes(secret), `${where} shows “${secret}”: ${text}`);
  };
  try {
    for (const name of names) {
      const page = await context.newPage();
      await page.goto(`http://${name}:${hostile.address().port}/`);
      assert.deepEqual(await page.evaluate(attack, { targets, todo }), [], `from ${name}`);
      for (const tab of context.pages()) {
        // A frame that was refused has another address.
        for (const frame of tab.frames().filter((found) => targets.some((target) => found.url().startsWith(target)))) {
          holdsNothing(frame.url(), await frame.evaluate(() => document.documentElement.outerHTML).catch(() => ""));
        }
      }
      // The whole tab goes there: by a link, and by a form.
      for (const target of targets) {
        const lead = async (where, go) => {
          await page.goto(`http://${name}:${hostile.address().port}/`);
          // The page may be gone before it answers.
          const leaving = page.evaluate(go, { address: target + where, todo }).catch(() => {});
          await Promise.all([page.waitForURL(`${target}${where}`), leaving]);
          const shown = await page.locator("body").innerText();
          assert.match(shown, /[Rr]equests of other sites are refused/, `${name} leads to ${target}${where}`);
          holdsNothing(where, shown);
        };
        await lead("/", ({ address }) => { location.href = address; });
        await lead("/todos", ({ address, todo: fields }) => {
          const form = document.createElement("form");
          Object.assign(form, { method: "post", action: address });
          for (const [field, value] of Object.entries(fields)) {
            form.append(Object.assign(document.createElement("input"), { name: field, value }));
          }
          document.body.append(form);
          form.submit();
        });
      }
      for (const tab of context.pages()) await tab.close();
    }
    // Nothing was changed, captured or signed out.
    assert.deepEqual(files(notes), before);
    assert.equal(readFileSync(join(workspace, "access-tokens.json"), "utf8"), tokens);
    // The attacks were real: cookies know no ports, so the page's requests bring the session. All were refused. What holds
    // nothing of the user is loaded by the pages that say so.
    assert(cookies.some((cookie) => cookie.includes("tracebook_session=")), "the browser has no session");
    const seen = log().flatMap((entries, at) => entries.slice(logged[at]));
    const isOpen = ({ path }) => path.startsWith("/assets/") || ["/service-worker.js", "/offline", "/manifest.webmanifest", "/favicon.ico"].includes(path);
    const answered = seen.filter((entry) => entry.status < 400 && !isOpen(entry) && !(entry.method === "GET" && entry.path === "/pair"));
    assert.deepEqual(answered, [], "requests of the hostile page were answered");
    for (const [method, path] of [["POST", "/capture"], ["POST", "/todos"], ["GET", "/"], ["GET", "/live"], ["GET", "/api/v1/agent"], ["POST", "/api/v1/tasks"], ["GET", "/notes/notes/Boat/mast.png"]]) {
      const refused = seen.filter((entry) => entry.method === method && entry.path === path && entry.status === 403);
      assert(refused.length >= names.length * targets.length, `${method} ${path}: ${refused.length} refused`);
    }
  } finally {
    hostile.close();
    hostile.closeAllConnections();
  }
}
