// The same chat with CopilotKit. Its runtimeUrl is the gateway, which keeps the thread: a reload shows it again, with open questions.
import { CopilotChat, CopilotKitProvider, useDefaultRenderTool, useHumanInTheLoop, useInterrupt } from '@copilotkit/react-core/v2'
import '@copilotkit/react-core/v2/styles.css'
import './style.css'
import { createRoot } from 'react-dom/client'
import { z } from 'zod'

const settings = await (await fetch('../settings.json')).json()
const field = document.getElementById('token') // the other page has the same one
field.value = sessionStorage.getItem('token') ?? ''
field.onchange = () => { sessionStorage.setItem('token', field.value); location.reload() }
const token = field.value
const headers = token ? { Authorization: `Bearer ${token}` } : {}
const options = new URLSearchParams(location.search)

if (!location.hash.slice(1)) history.replaceState(null, '', '#' + crypto.randomUUID())
addEventListener('hashchange', () => location.reload())

// inputOf is what a tool or a question was called with, without the fields for frontends.
const inputOf = ({ _ui, tool_args, interaction_type, workflow_name, agent_name, display, mode, actions, agent_message_id, ...input } = {}) => JSON.stringify(tool_args ?? input, null, 1)

const Card = ({ name, status, input, result, children }) => (
  <article className='call' data-name={name}>
    <h2>{name}: {status}</h2>
    <pre>{input}</pre>
    {result && <p className='result'>{result}</p>}
    {children}
  </article>
)

const Decision = ({ message, give }) => (
  <div className='question'>
    {message && <p>{message}</p>}
    <button type='button' onClick={() => give({ status: 'approved' })}>Approve</button>
    <button type='button' onClick={() => give({ status: 'rejected' })}>Reject</button>
  </div>
)

// Calls are the tools of the worker: they are shown, and the page does not run them.
const Calls = () => {
  useDefaultRenderTool({ render: ({ name, parameters, status, result }) => <Card name={name} status={status} input={inputOf(parameters)} result={result} /> })
  return null
}

// Interrupts are questions to the person: a run ends with them, and the answer resumes it.
const Interrupts = () => {
  useInterrupt({
    render: ({ interrupts, resolve }) => (
      <>{interrupts.map(({ id, message }) => <Decision key={id} message={message ?? 'An answer is needed.'} give={(answer) => resolve(answer, id)} />)}</>
    ),
  })
  return null
}

// Approval is the other way to answer, as a tool of the page with the name of the question's component: ?tool in the address.
const Approval = () => {
  useHumanInTheLoop({
    name: 'PostApproval', description: 'Asks a person whether a post may be published', parameters: z.object({}).passthrough(),
    render: ({ name, args, status, respond, result }) => (
      <Card name={name} status={status} input={inputOf(args)} result={result}>{respond && <Decision give={respond} />}</Card>
    ),
  })
  return null
}

const chat = document.getElementById('chat')
// CopilotKit throws if the gateway does not know the workflow: then no worker has started yet, or a token is missing.
const onUncaughtError = (error) => { chat.textContent = error.message }

createRoot(chat, { onUncaughtError }).render(
  <CopilotKitProvider runtimeUrl={`${settings.gateway}/agui`} useSingleEndpoint={options.has('single') || undefined} headers={headers} agentId={settings.workflow} enableInspector={false}>
    <Calls />
    {options.has('tool') ? <Approval /> : <Interrupts />}
    <CopilotChat agentId={settings.workflow} threadId={location.hash.slice(1)} />
  </CopilotKitProvider>,
)
