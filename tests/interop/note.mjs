// A client with npm's automerge-repo at one of our notes: types into its last block, says by automerge-repo's Presence
// that it is there, and says what it has at the end.
//
//   node note.mjs WS ADDRESS TAG COUNT
//
// It prints READY, PRESENT for whoever else is at the note, then TEXT (JSON) and HEADS once nothing has changed for a while.
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
const require = createRequire(`${process.env.INTEROP_MODULES}/`)
const load = name => import(pathToFileURL(require.resolve(name)).href)
const { Repo, Presence } = await load("@automerge/automerge-repo")
const { WebSocketClientAdapter } = await load("@automerge/automerge-repo-network-websocket")
const Automerge = await load("@automerge/automerge")

const [ws, address, tag, count] = process.argv.slice(2)
const sleep = milliseconds => new Promise(done => setTimeout(done, milliseconds))
const repo = new Repo({ network: [new WebSocketClientAdapter(ws, 500)], peerId: `js-${tag}-${process.pid}` })
let handle
for (let tries = 0; ; tries++) {
  try {
    handle = await repo.find(address)
    break
  } catch (error) {
    if (tries > 40) throw error
    await sleep(250)
  }
}
await handle.whenReady?.()
const blocks = () => Object.entries(handle.doc().blocks ?? {})
  .sort(([one, a], [other, b]) => a.pos < b.pos ? -1 : a.pos > b.pos ? 1 : one < other ? -1 : 1)
while (blocks().length === 0) await sleep(100)
let last = Date.now()
handle.on("change", () => { last = Date.now() })
const presence = new Presence({ handle })
for (const event of ["snapshot", "update"]) {
  presence.on(event, said => console.log("PRESENT", JSON.stringify(said.state ?? said.value)))
}
presence.start({ initialState: { user: { name: `client ${tag}` }, carets: [], running: [] }, heartbeatMs: 2000 })
console.log("READY")
const [id] = blocks().at(-1)
for (let number = 0; number < +count; number++) {
  handle.change(doc => {
    const text = doc.blocks[id].text
    Automerge.splice(doc, ["blocks", id, "text"], text.length - 1, 0, `[${tag}${number}]`)
  })
  await sleep(10)
}
while (Date.now() - last < +(process.env.SETTLE ?? 4000)) await sleep(100)
presence.stop()
await sleep(200)
console.log("TEXT", JSON.stringify(blocks().map(([, block]) => block.text).join("")))
console.log("HEADS", Automerge.getHeads(handle.doc()).sort().join(","))
process.exit(0)
