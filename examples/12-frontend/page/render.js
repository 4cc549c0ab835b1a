// What the page shows of an agent: texts, calls of tools and questions. All that comes from outside becomes text nodes; nothing
// is parsed as HTML.

const element = (name, className, ...children) => {
  const made = document.createElement(name)
  made.className = className
  made.append(...children) // strings become text nodes
  return made
}
const button = (label, disabled, click) => {
  const made = element('button', '', label)
  made.type = 'button'
  made.disabled = disabled
  made.onclick = click
  return made
}
const textOf = (content) => typeof content === 'string' ? content : JSON.stringify(content)
const parsed = (json) => { try { return JSON.parse(json) } catch { return json } }
const pretty = (value) => typeof value === 'string' ? value : JSON.stringify(value, null, 1)

// inputOf is what a tool was called with, without the fields for frontends.
const inputOf = (call) => {
  const all = parsed(call.function.arguments)
  if (all === null || typeof all !== 'object') return pretty(all)
  if (all.tool_args) return pretty(all.tool_args)
  const { _ui, interaction_type, workflow_name, agent_name, display, mode, actions, agent_message_id, ...input } = all
  return pretty(input)
}

const card = (call, agent, { questions, busy, answer }) => {
  const result = agent.messages.find((m) => m.role === 'tool' && m.toolCallId === call.id)
  const interrupt = questions.find((i) => i.toolCallId === call.id)
  const phase = agent.state?.turns?.[call.id]?.phase
  const made = element('article', 'card', element('h2', '', call.function.name, phase ? `: ${phase}` : ''), element('pre', '', inputOf(call)))
  made.dataset.call = call.id
  if (result) {
    if (result.metadata?.success === false) made.classList.add('failed')
    const value = parsed(result.content)
    made.append(element('div', 'result', pretty(value?.message ?? value)))
  }
  if (interrupt) {
    made.classList.add('question')
    made.append(element('div', 'result', interrupt.message ?? 'An answer is needed.'), actions(call, (payload) => answer(interrupt, payload), busy))
  }
  return made
}

// actions are the ways to answer a question: two buttons for a post, else a field for JSON.
const actions = (call, give, busy) => {
  if (call.function.name === 'PostApproval') {
    return element('div', 'actions', button('Approve', busy, () => give({ status: 'approved' })), button('Reject', busy, () => give({ status: 'rejected' })))
  }
  const field = element('input', '')
  return element('div', 'actions', field, button('Answer', busy, () => give(parsed(field.value))))
}

// cards are those that stand in the page, by message: one that has not changed stays, with what is typed in it.
const cards = new Map()

export const render = (into, agent, controls) => {
  const shown = []
  for (const m of agent.messages) {
    const draw = m.role === 'user' || (m.role === 'assistant' && m.content) ? () => [element('div', `text ${m.role}`, textOf(m.content))] : () => []
    const calls = m.role === 'assistant' ? m.toolCalls ?? [] : []
    const facts = JSON.stringify([m, controls.busy, calls.map((c) => [agent.state?.turns?.[c.id], controls.questions.find((i) => i.toolCallId === c.id), agent.messages.find((r) => r.toolCallId === c.id)])])
    if (cards.get(m.id)?.facts !== facts) cards.set(m.id, { facts, nodes: [...draw(), ...calls.map((c) => card(c, agent, controls))] })
    shown.push(...cards.get(m.id).nodes)
  }
  if (shown.length === into.childNodes.length && shown.every((node, i) => node === into.childNodes[i])) return
  into.replaceChildren(...shown)
  into.lastElementChild?.scrollIntoView({ block: 'end' })
}
