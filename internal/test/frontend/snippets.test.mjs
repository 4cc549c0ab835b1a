// The code for frontends in docs/gateway.md, as the page shows it, one piece after the other on one chat.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { HttpAgent } from 'agui-1.0.0'

const page = readFileSync('../../../docs/gateway.md', 'utf8')
const at = process.env.ONETURN_GATEWAY
const local = (code) => code.replaceAll('https://gateway.example', at).replace('/ws/Studio/acme/', '/ws/Studio/default/')
const pieces = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => local(code))
const ran = new Set()
const piece = (mark) => {
  const found = pieces.filter((code) => code.includes(mark))
  assert.equal(found.length, 1, mark)
  ran.add(found[0])
  return found[0]
}

// run runs code with values, and returns the variables that are asked for.
const AsyncFunction = (async () => {}).constructor
const run = (code, values, ...wanted) => new AsyncFunction(...Object.keys(values), `${code}\nreturn { ${wanted.join(', ')} }`)(...Object.values(values))

// frames collects what a socket gets, and until waits for a frame.
const frames = (socket) => {
  const got = []
  socket.onmessage = ({ data }) => got.push(JSON.parse(data))
  const until = async (type) => {
    for (let tries = 0; !got.some((frame) => frame.type === type); tries++) {
      assert.ok(tries < 200 && socket.readyState <= WebSocket.OPEN, `no ${type}, state ${socket.readyState}: ${JSON.stringify(got)}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    return got.find((frame) => frame.type === type)
  }
  return { got, until }
}

test('the code of the page runs: a socket, a run, a connect, a resume, and a socket that continues', { timeout: 60_000 }, async (t) => {
  const [chat, token] = [randomUUID(), 't0ken'] // --dev takes any
  const open = async (lastSequence) => {
    const { socket } = await run(piece('new WebSocket('), { chat, token, lastSequence }, 'socket')
    t.after(() => socket.close()) // an open socket would keep Node alive after a failure
    return socket
  }
  const fetched = t.mock.method(globalThis, 'fetch')
  const socket = await open(undefined)
  const first = frames(socket)
  assert.equal((await first.until('chat.resume_boundary')).data.replayed_messages, 0)
  assert.equal(socket.protocol, 'oneturn')

  const { agent } = await run(piece('await agent.runAgent()'), { HttpAgent, chat, token }, 'agent')
  assert.equal(agent.pendingInterrupts.length, 1)
  await first.until('chat.tool_call')
  const lastSequence = Math.max(...first.got.map(({ sequence }) => sequence ?? 0))
  socket.close()

  const [own, connect] = piece('connectAgent').split(/^(?=agent\.pendingInterrupts)/m)
  const { ChatAgent } = await run(own, { HttpAgent }, 'ChatAgent')
  const reloaded = new ChatAgent({ url: agent.url, threadId: chat, headers: agent.headers })
  await run(connect, { agent: reloaded })
  assert.deepEqual(reloaded.pendingInterrupts.map(({ id }) => id), agent.pendingInterrupts.map(({ id }) => id))
  assert.ok(reloaded.messages.some(({ role, content }) => role === 'user' && content === 'Publish it'), 'the chat is displayed')
  await run(connect, { agent: reloaded })
  assert.equal(reloaded.pendingInterrupts.length, 1, 'a connect changes nothing')

  await run(piece('resume: ['), { agent: reloaded })
  assert.equal(reloaded.pendingInterrupts.length, 0)
  assert.match(JSON.stringify(reloaded.messages), /is published/)

  const paths = fetched.mock.calls.map(({ arguments: [url] }) => new URL(url).pathname.replace('/agui/Studio', ''))
  assert.deepEqual(paths, ['', '/connect', '/connect', ''])

  const second = frames(await open(lastSequence))
  await second.until('chat.tool_response')
  await second.until('chat.resume_boundary')
  const sequences = second.got.flatMap(({ sequence }) => sequence ?? [])
  assert.ok(sequences.every((sequence) => sequence > lastSequence), `${sequences} after ${lastSequence}`)
  assert.equal(ran.size, pieces.length, 'the page has code that does not run here')
})
