// The gateway as AG-UI's client sees it, in the generation that CopilotKit has and in the current one.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'

const [here, there] = process.env.ONETURN_GATEWAYS.split(' ')
const headers = { Authorization: 'Bearer ada' }

// agentsOf returns a function that makes agents on a gateway, each as a freshly loaded page has one.
const agentsOf = ({ HttpAgent }) => {
  class Agent extends HttpAgent {
    // The client has a hook and no transport for it: a connect is a run on another endpoint.
    connect (input) { return new HttpAgent({ url: `${this.url}/connect`, headers }).run(input) }

    // show connects. The client would refuse it while it knows of a question.
    show () {
      this.pendingInterrupts = []
      return this.connectAgent()
    }

    // say runs with a message of the user: the agent of the turn, and an item.
    say (text, parameters, subscriber) {
      this.addMessage({ id: randomUUID(), role: 'user', content: text })
      return this.runAgent(parameters, subscriber)
    }
  }
  return (gateway, threadId) => new Agent({ url: `${gateway}/agui/Shop`, threadId, headers })
}

const callsOf = (agent) => agent.messages.flatMap((m) => m.toolCalls ?? [])
const callNamed = (agent, name) => callsOf(agent).find((c) => c.function.name === name)
const resultsOf = (agent, call) => agent.messages.filter((m) => m.role === 'tool' && m.toolCallId === call.id).map((m) => m.content)
const approved = (interrupt) => [{ interruptId: interrupt.id, status: 'resolved', payload: { status: 'approved' } }]
// Activities are of what runs now, so only a reload has to show them.
const shown = (agent) => agent.messages.filter((m) => m.role !== 'activity')
const screen = (agent) => JSON.stringify([agent.messages, agent.state, agent.pendingInterrupts])

for (const generation of ['0.0.59', '1.0.0']) {
  describe(`@ag-ui/client ${generation}`, { concurrency: true, timeout: 60_000 }, async () => {
    const newAgent = agentsOf(await import(`agui-${generation}`))

    test('a run has the call of the tool and its result', async () => {
      const agent = newAgent(here, randomUUID())
      await agent.say('Seller lamp')
      const call = callNamed(agent, 'quote')
      assert.deepEqual(JSON.parse(call.function.arguments).tool_args, { item: 'lamp' })
      assert.match(resultsOf(agent, call).join(), /lamp costs 7/)
      assert.equal(resultsOf(agent, call).length, 1)
      assert.equal(agent.state.turns[call.id].phase, 'done')
    })

    test('a question survives a reload, and another gateway takes the answer', async () => {
      const before = newAgent(here, randomUUID())
      await before.say('Clerk lamp')
      assert.equal(before.pendingInterrupts.length, 1)
      await assert.rejects(before.runAgent(), /pending interrupt/, 'the client knows that the run waits')

      const after = newAgent(there, before.threadId)
      await after.show()
      assert.deepEqual(after.pendingInterrupts.map((i) => i.id), before.pendingInterrupts.map((i) => i.id))
      assert.deepEqual(shown(after), shown(before))
      assert.deepEqual(JSON.parse(callNamed(after, 'Approval').function.arguments).item, 'lamp')

      const resume = approved(after.pendingInterrupts[0])
      await after.runAgent({ resume })
      assert.deepEqual(after.pendingInterrupts, [])
      assert.match(resultsOf(after, callNamed(after, 'approve')).join(), /decided: approved/)

      await before.runAgent({ resume })
      assert.deepEqual(before.pendingInterrupts, [], 'the same answer from the first tab is not an error')
      assert.match(resultsOf(before, callNamed(before, 'approve')).join(), /decided: approved/)
      assert.equal(resultsOf(before, callNamed(before, 'approve')).length, 1)
    })

    test('a connect that is repeated shows the same, on each gateway', async () => {
      const agent = newAgent(here, randomUUID())
      await agent.say('Seller chair')
      await agent.say('Clerk chair')
      await agent.show()
      const first = screen(agent)
      await agent.show()
      assert.equal(screen(agent), first)
      const other = newAgent(there, agent.threadId)
      await other.show()
      await other.show()
      assert.equal(screen(other), first)
      assert.equal(callsOf(other).length, 3, 'two calls of tools and a question')
    })

    test('a connect to a chat without messages is empty and ends', async () => {
      const agent = newAgent(here, randomUUID())
      await agent.show()
      assert.deepEqual(agent.messages, [])
    })

    test('a tool of the page answers the question of a tool', async () => {
      const tools = [{ name: 'Approval', description: 'Asks the person', parameters: { type: 'object' } }]
      const agent = newAgent(here, randomUUID())
      await agent.say('Clerk desk', { tools })
      assert.deepEqual(agent.pendingInterrupts, [], 'a question has one way to be answered')
      const call = callNamed(agent, 'Approval')
      assert.deepEqual(resultsOf(agent, call), [])
      agent.addMessage({ id: randomUUID(), role: 'tool', toolCallId: call.id, content: JSON.stringify({ status: 'rejected' }) })
      agent.url = `${there}/agui/Shop`
      await agent.runAgent({ tools })
      assert.match(resultsOf(agent, callNamed(agent, 'approve')).join(), /decided: rejected/)
      assert.deepEqual(resultsOf(agent, call), ['{"status":"rejected"}'])
    })

    test('a stop at another gateway ends the run and its turn', async () => {
      const agent = newAgent(here, randomUUID())
      const item = randomUUID()
      let outcome, failure
      const running = agent.say(`Packer ${item}`, { runId: 'r1' }, {
        onRunFinishedEvent: ({ event }) => { outcome = event.outcome?.type },
        onRunErrorEvent: ({ event }) => { failure = event.code },
      })
      await startedPacking(item)
      const stop = (runId) => fetch(`${there}/agui/Shop/stop/${agent.threadId}`, { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body: JSON.stringify({ runId }) })
      assert.equal((await stop('another')).status, 404)
      assert.equal((await stop('r1')).status, 202)
      await running
      if (generation === '0.0.59') assert.equal(failure, 'abort', 'it knows no other form')
      else assert.equal(outcome, 'cancelled')
      await agent.show()
      assert.equal(agent.state.turns[callNamed(agent, 'pack').id].phase, 'error')
    })

    test('a page that leaves cancels nothing', async () => {
      const agent = newAgent(here, randomUUID())
      const item = randomUUID()
      const running = agent.say(`Packer ${item}`)
      await startedPacking(item)
      agent.abortRun()
      await running
      const again = newAgent(there, agent.threadId)
      const connected = again.show()
      await tools(`release/${item}`, 'POST')
      await connected
      assert.match(resultsOf(again, callNamed(again, 'pack')).join(), /is packed/)
      assert.equal(await tools(`runs/${item}`), '1')
    })
  })
}

const tools = async (path, method = 'GET') => (await fetch(`${process.env.ONETURN_TOOLS}/${path}`, { method })).text()

const startedPacking = async (item) => {
  while (await tools(`runs/${item}`) === '0') await new Promise((resolve) => setTimeout(resolve, 20))
}
