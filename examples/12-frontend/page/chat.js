// One chat, with AG-UI's client. The chat is in the address, so a reload and a second tab show the same: all of it is in the
// journal, and any gateway serves it.
import { HttpAgent } from './agui.js'
import { render } from './render.js'

const settings = await (await fetch('settings.json')).json()
const $ = (id) => document.getElementById(id)
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); addEventListener('online', resolve, { once: true }) })

if (!location.hash.slice(1)) history.replaceState(null, '', '#' + crypto.randomUUID())
addEventListener('hashchange', () => location.reload())
$('copilotkit').href += location.hash // the same chat
$('new').href = '#' + crypto.randomUUID()
$('token').value = sessionStorage.getItem('token') ?? ''
$('token').onchange = () => { sessionStorage.setItem('token', $('token').value); location.reload() }
const token = $('token').value

class Agent extends HttpAgent {
  // The client has a hook for this and no transport: a connect is a run on another endpoint, which shows the chat and changes nothing.
  connect (input) {
    const viewer = new HttpAgent({ url: this.url + '/connect', headers: this.headers })
    viewer.abortController = this.abortController = new AbortController()
    return viewer.run(input)
  }
}

const agent = new Agent({
  url: `${settings.gateway}/agui/${settings.workflow}`,
  threadId: location.hash.slice(1),
  headers: token ? { Authorization: `Bearer ${token}` } : {},
})

let state = 'connecting' // what the header shows
let work // what this page sends now, until it is known to have arrived
let viewing // the connect that shows what others do
let stale = false // there may be something that is not shown
let questions = [] // those that are open, by the last run that has ended

const show = () => {
  $('status').textContent = state
  $('send').disabled = $('text').disabled = work !== undefined || questions.length > 0
  $('stop').hidden = work === undefined
  render($('messages'), agent, { questions, busy: work !== undefined, answer })
}
const become = (text) => { state = text; show() }

// attempt makes a request until it has arrived. Sending one again is safe: messages and answers have ids, and what has
// happened before is not done twice.
const attempt = async (request) => {
  for (;;) {
    let failure
    try {
      await request({ onEvent: () => become('connected'), onMessagesChanged: show, onStateChanged: show, onRunErrorEvent: ({ event }) => { failure = event } })
      if (!failure) questions = agent.pendingInterrupts
      if (failure?.code !== 'unavailable') return failure // the gateway stops: another one continues
    } catch (error) {
      if (error.name === 'AbortError') return { code: 'abort' }
      if (error.status && error.status !== 409 && error.status !== 429 && error.status < 500) return { message: error.payload?.message ?? error.message }
    }
    become(navigator.onLine ? 'the gateway cannot be reached: trying again' : 'offline')
    await pause(1000)
  }
}

// look shows what has happened. It ends by itself when the chat waits for a person.
const look = async () => {
  stale = false
  const failure = await attempt(async (subscriber) => {
    if (work) return void (agent.pendingInterrupts = questions)
    agent.pendingInterrupts = [] // with them the client would refuse: those that are open come again
    await agent.connectAgent({}, subscriber)
  })
  if (failure && failure.code !== 'abort') become(failure.message)
}
const refresh = () => {
  stale = true
  if (work || viewing) return
  viewing = (async () => { while (stale && !work) await look() })().finally(() => { viewing = undefined; show() })
}

// send runs the agent: with a new message, or with answers.
const send = (parameters) => {
  const runId = crypto.randomUUID()
  work = (async () => {
    agent.abortRun() // of a connect: that ends the view, not the turns
    await viewing
    const failure = await attempt((subscriber) => {
      agent.pendingInterrupts = questions
      return agent.runAgent({ runId, ...parameters }, subscriber)
    })
    if (failure && failure.code !== 'abort') become(failure.message)
  })().finally(() => { work = undefined; show(); refresh() })
  show()
}
const answer = (interrupt, payload) => send({
  resume: questions.map((open) => open.id === interrupt.id
    ? { interruptId: open.id, status: 'resolved', payload }
    : { interruptId: open.id, status: 'cancelled' }),
})

$('composer').onsubmit = (event) => {
  event.preventDefault()
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: $('text').value })
  $('text').value = ''
  send({})
}
$('stop').onclick = () => fetch(`${agent.url}/stop/${encodeURIComponent(agent.threadId)}`, { method: 'POST', headers: agent.headers })

// listen follows the chat on a WebSocket, which also notices when the gateway is gone. What it receives is not shown, only
// that there is something: the connect shows it.
const listen = async () => {
  const path = ['ws', settings.workflow, settings.app, agent.threadId, 'me'].map(encodeURIComponent).join('/')
  for (;;) {
    const socket = new WebSocket(`${settings.gateway.replace(/^http/, 'ws')}/${path}`, token ? ['oneturn', `bearer.${token}`] : ['oneturn'])
    socket.onmessage = ({ data }) => {
      const { type, replay } = JSON.parse(data)
      if (type.startsWith('chat.') && !replay) refresh() // also at the end of the replay, chat.resume_boundary
    }
    const closed = new Promise((resolve) => { socket.onclose = resolve })
    addEventListener('offline', () => socket.close(), { once: true })
    const { reason } = await closed
    become(navigator.onLine ? `the connection is closed${reason && `: ${reason}`}` : 'offline')
    if (reason.startsWith('token_') || reason === 'forbidden') return
    await pause(1000)
  }
}

show()
listen()
