// What a tool's function finds besides the language itself: console, timers, fetch, fs, ui and shell.
//
// Nothing here protects anything. The process has no files and no network; whatever is sent with `native.request` is
// checked by the host, so that a tool that replaces these functions or calls `native` gains nothing.
(native, granted, name) => {
    "use strict";
    const { parse, stringify } = JSON;
    const waiting = Object.create(null);
    const timers = Object.create(null);
    const define = (key, value) =>
        Object.defineProperty(globalThis, key, { value, writable: true, configurable: true, enumerable: false });
    const refuse = (permission) => new Error(`${name} has no ${permission} permission`);

    // Sends a request to the host and returns a promise of its answer.
    const ask = (request) =>
        new Promise((resolve, reject) => {
            const id = native.request(stringify(request));
            waiting[id] = { resolve, reject };
        });
    const asked = async (request) => {
        const answer = await ask(request);
        if (answer.error !== undefined) throw new Error(answer.error);
        return answer;
    };

    const shown = (value) => {
        if (typeof value === "string") return value;
        if (value instanceof Error) return `${value}`;
        try {
            return stringify(value) ?? String(value);
        } catch {
            return String(value);
        }
    };
    const print = (...values) => native.print(`${values.map(shown).join(" ")}\n`.toWellFormed());
    define("console", { log: print, info: print, warn: print, error: print, debug: print });

    define("setTimeout", (callback, milliseconds = 0, ...values) => {
        if (typeof callback !== "function") throw new TypeError("setTimeout takes a function");
        const id = native.startTimer(Number(milliseconds) || 0);
        timers[id] = () => callback(...values);
        return id;
    });
    define("clearTimeout", (id) => {
        if (delete timers[id]) native.stopTimer(Number(id) || 0);
    });

    const encodeBytes = (bytes) => {
        let text = "";
        for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096));
        return native.encodeBytes(text);
    };
    const toBase64 = (body) => {
        if (body === undefined || body === null) return undefined;
        if (typeof body === "string") return native.encodeText(body.toWellFormed());
        if (body instanceof ArrayBuffer) return encodeBytes(new Uint8Array(body));
        if (ArrayBuffer.isView(body)) return encodeBytes(new Uint8Array(body.buffer, body.byteOffset, body.byteLength));
        return native.encodeText(String(body).toWellFormed());
    };

    class Headers {
        #values = Object.create(null);
        constructor(entries = {}) {
            const pairs = typeof entries[Symbol.iterator] === "function" ? entries : Object.entries(entries);
            for (const [key, value] of pairs) this.append(key, value);
        }
        append(key, value) {
            const known = this.get(key);
            this.set(key, known === null ? value : `${known}, ${value}`);
        }
        set(key, value) {
            this.#values[String(key).toLowerCase()] = String(value);
        }
        delete(key) {
            delete this.#values[String(key).toLowerCase()];
        }
        get(key) {
            return this.#values[String(key).toLowerCase()] ?? null;
        }
        has(key) {
            return this.get(key) !== null;
        }
        entries() {
            return Object.entries(this.#values)[Symbol.iterator]();
        }
        forEach(callback) {
            for (const [key, value] of this) callback(value, key, this);
        }
        [Symbol.iterator]() {
            return this.entries();
        }
    }

    class Response {
        #body;
        constructor({ status, url, headers, body }) {
            this.status = status;
            this.ok = status >= 200 && status < 300;
            this.statusText = "";
            this.url = url;
            this.headers = new Headers(headers);
            this.#body = body;
        }
        async text() {
            return native.decodeText(this.#body);
        }
        async json() {
            return parse(await this.text());
        }
        async arrayBuffer() {
            return native.decodeBytes(this.#body);
        }
    }

    define("Headers", Headers);
    define("fetch", async (input, options = {}) => {
        if (!granted.network) throw refuse("network");
        const { method = "GET", headers = {}, body } = options;
        const sent = { method: String(method).toUpperCase(), headers: Object.fromEntries(new Headers(headers)) };
        const answer = await ask({ url: String(input), ...sent, body: toBase64(body) });
        if (answer.error !== undefined) throw new TypeError(`fetch failed: ${answer.error}`);
        return new Response(answer);
    });

    // The names of Node's `fs/promises`, for files of the project.
    const file = async (operation, path, more) => {
        if (!granted.fs) throw refuse("fs");
        if (typeof path !== "string") throw new TypeError("a path is a string");
        return asked({ file: { operation, path, ...more } });
    };
    define("fs", {
        async readFile(path, encoding = "utf8") {
            const { body } = await file("read", path);
            return typeof encoding === "string" && encoding.startsWith("utf")
                ? native.decodeText(body)
                : new Uint8Array(native.decodeBytes(body));
        },
        async writeFile(path, data) {
            await file("write", path, { body: toBase64(data) ?? "" });
        },
        async readdir(path = "") {
            return (await file("list", path)).names;
        },
        async stat(path) {
            const { kind, size, modified } = await file("stat", path);
            return { size, mtimeMs: modified, isFile: () => kind === "file", isDirectory: () => kind === "folder" };
        },
        async exists(path) {
            return (await file("exists", path)).exists;
        },
        async unlink(path) {
            await file("remove", path);
        },
    });

    define("ui", {
        show(bundle) {
            if (!granted.ui) throw refuse("ui");
            native.show(stringify(bundle) ?? "null");
        },
    });

    define("shell", async (command) => {
        if (!granted.process) throw refuse("process");
        const { success, output } = await asked({ command: String(command) });
        if (!success) throw Object.assign(new Error(output.trim() || "the command failed"), { output });
        return output;
    });

    return {
        // Calls the tool's function and awaits what it returns.
        run: async (callback, values) => await callback(values),
        settle(id, answer) {
            const { resolve, reject } = waiting[id];
            delete waiting[id];
            try {
                resolve(parse(answer));
            } catch (error) {
                reject(error);
            }
        },
        fire(id) {
            const callback = timers[id];
            delete timers[id];
            callback?.();
        },
    };
};
