// A client with npm's automerge-repo: makes a document or joins one, types into it, and says what it has at the end.
//
//   node client.mjs WS create TAG COUNT
//   node client.mjs WS join ADDRESS TAG COUNT
//
// It prints URL, then EPHEMERAL for what others say, then TEXT and HEADS once nothing has changed for a while.
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
const require = createRequire(`${process.env.INTEROP_MODULES}/`)
const load = name => import(pathToFileURL(require.resolve(name)).href)
const { Repo } = await load("@automerge/automerge-repo")
const { WebSocketClientAdapter } = await load("@automerge/automerge-repo-network-websocket")
const Automerge = await load("@automerge/automerge")

const [ws, mode, ...rest] = process.argv.slice(2)
const sleep = milliseconds => new Promise(done => setTimeout(done, milliseconds))
const repo = new Repo({ network: [new WebSocketClientAdapter(ws, 500)], peerId: `js-${process.pid}` })
let handle, tag, count
if (mode === "create") {
  [tag, count] = rest
  handle = repo.create({ text: "hello" })
  console.log("URL", handle.url)
} else {
  let address
  [address, tag, count] = rest
  for (let tries = 0; ; tries++) {
    try {
      handle = await repo.find(address)
      break
    } catch (error) {
      if (tries > 40) throw error
      await sleep(250)
    }
  }
}
await handle.whenReady?.()
let met = false
let last = Date.now()
handle.on("ephemeral-message", said => {
  met = true
  console.log("EPHEMERAL", JSON.stringify(said.message))
})
handle.on("change", () => { last = Date.now() })
// Both begin to type when each has heard of the other.
for (let tries = 0; tries < 150 && !met; tries++) {
  handle.broadcast({ hello: tag })
  await sleep(100)
}
for (let number = 0; number < +count; number++) {
  handle.change(doc => Automerge.splice(doc, ["text"], number % 2 ? doc.text.length : 0, 0, `[${tag}${number}]`))
  await sleep(5)
}
handle.broadcast({ from: tag, cursor: 3 })
while (Date.now() - last < +(process.env.SETTLE ?? 2500)) await sleep(100)
console.log("TEXT", handle.doc().text)
console.log("HEADS", Automerge.getHeads(handle.doc()).sort().join(","))
process.exit(0)
