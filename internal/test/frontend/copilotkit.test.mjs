// The page of examples/12-frontend with CopilotKit in Chromium: both transports of its runtimeUrl, and both ways to answer.
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { answered, hosts, launch, open, question, stage, takeover } from './browser.mjs'

let browser, context
before(async () => { browser = await launch() })
after(() => browser?.close())
afterEach(() => context?.close())

const page = `${process.env.ONETURN_PAGE}/copilotkit/`
// While it connects, CopilotKit sends nothing and keeps the text.
const write = async (tab, text) => {
  const field = tab.locator('textarea')
  await field.fill(text)
  for (let tries = 0; await field.inputValue(); tries++) {
    assert.ok(tries < 300, 'the text is not sent')
    await field.press('Enter')
    await tab.waitForTimeout(100)
  }
}
const runs = (tab) => tab.requests.filter(({ method, url, body }) => method === 'POST' && (/\/agent\/Studio\/run$/.test(url) || body?.method === 'agent/run'))

for (const { title, query, transport } of [
  { title: 'an interrupt, by the routes of the runtime', query: '', transport: /\/agui\/agent\/Studio\/run$/ },
  { title: 'an interrupt, by the single route', query: '?single', transport: /\/agui$/ },
  { title: 'a tool of the page', query: '?tool', transport: /\/agui\/agent\/Studio\/run$/ },
]) {
  test(`a question is shown, survives a reload and the death of its worker, and is answered: ${title}`, { timeout: 90_000 }, async () => {
    context = await browser.newContext({ viewport: { width: 900, height: 820 } })
    const tab = await open(context, page + query)
    await write(tab, 'Spring sale\nEverything must go.')
    await question(tab).waitFor()
    assert.match(await tab.locator('[data-name=PostApproval]').innerText(), /Everything must go/)
    if (process.env.ONETURN_PICTURE && !query) await tab.screenshot({ path: process.env.ONETURN_PICTURE })

    await tab.reload()
    await question(tab).waitFor()
    const second = await open(context, tab.url())
    await question(second).waitFor()

    await takeover(async () => {
      await question(tab).getByText('Approve').click()
      await question(tab).waitFor({ state: 'detached' })
    })
    await answered(tab, 'Spring sale is published.')
    await tab.reload()
    await answered(tab, 'Spring sale is published.')
    assert.equal(await question(tab).count(), 0)
    assert.equal(await tab.getByText('Everything must go.', { exact: false }).count() > 0, true)

    await write(tab, 'Winter sale')
    await question(tab).getByText('Reject').click()
    await answered(tab, 'Winter sale stays a draft')
    assert.ok(runs(tab).length >= 4 && runs(tab).every(({ url }) => transport.test(url)), JSON.stringify(runs(tab)))
    assert.deepEqual([...tab.faults, ...second.faults], [])
    assert.deepEqual([...hosts(tab)].sort(), [process.env.ONETURN_GATEWAY, process.env.ONETURN_PAGE].sort(), 'it calls no other host')
  })
}

test('the token of the field is sent with all requests, after a reload as well, and the address does not have it', { timeout: 60_000 }, async () => {
  context = await browser.newContext()
  const tab = await open(context, page)
  const requested = (has) => tab.waitForRequest((request) => request.url().startsWith(process.env.ONETURN_GATEWAY) && has(request.headers().authorization))
  await Promise.all([requested((value) => !value), tab.reload()])
  await tab.getByLabel('Token').fill('t0ken')
  await Promise.all([requested((value) => value === 'Bearer t0ken'), tab.getByLabel('Token').press('Enter')])
  const sent = []
  tab.on('request', (request) => { if (request.url().startsWith(process.env.ONETURN_GATEWAY) && request.method() !== 'OPTIONS') sent.push(request.headers().authorization) })
  await tab.reload()
  assert.equal(await tab.getByLabel('Token').inputValue(), 't0ken')
  await write(tab, 'Token sale')
  await question(tab).waitFor()
  assert.ok(sent.length >= 2 && sent.every((value) => value === 'Bearer t0ken'), String(sent))
  assert.doesNotMatch(tab.url(), /t0ken/)
})

test('without the routes of the runtime, CopilotKit takes the single route by itself', { timeout: 90_000 }, async () => {
  context = await browser.newContext()
  await context.route('**/agui/info', (route) => route.fulfill({ status: 404, headers: { 'Access-Control-Allow-Origin': '*' } }))
  const tab = await open(context, page)
  await write(tab, 'Summer sale')
  await question(tab).getByText('Approve').click()
  await answered(tab, 'Summer sale is published.')
  assert.ok(runs(tab).length >= 2 && runs(tab).every(({ body }) => body.method === 'agent/run'), JSON.stringify(runs(tab)))
})

test('another gateway takes over: a reload shows the chat, and what was sent is done once', { timeout: 90_000 }, async () => {
  context = await browser.newContext()
  const tab = await open(context, page)
  await write(tab, 'Night sale')
  await question(tab).waitFor()
  await stage('kill/gateway')
  await stage('start/gateway')
  await tab.reload()
  await question(tab).waitFor()
  await takeover(async () => {
    await question(tab).getByText('Approve').click()
    await question(tab).waitFor({ state: 'detached' })
    await stage('kill/gateway') // and with it the run that waits for the turn
    await stage('start/gateway')
  })
  await tab.reload()
  // The gateway may have died before it had the answer. It is harmless to give it again.
  await tab.locator('.result', { hasText: 'is published.' }).or(question(tab)).first().waitFor()
  if (await question(tab).count()) await question(tab).getByText('Approve').click()
  await answered(tab, 'Night sale is published.')
  assert.equal(await tab.getByText('Night sale', { exact: true }).count(), 1)
})

test('an answer of another tab is shown after a reload, and is not needed again', { timeout: 90_000 }, async () => {
  context = await browser.newContext()
  const tab = await open(context, page)
  await write(tab, 'Autumn sale')
  await question(tab).waitFor()
  const second = await open(context, tab.url())
  await question(second).getByText('Approve').click()
  await answered(second, 'Autumn sale is published.')
  await question(tab).getByText('Reject').click() // too late: the first answer is the one
  await answered(tab, 'Autumn sale is published.')
  assert.equal(await question(tab).count(), 0)
  assert.deepEqual([...tab.faults, ...second.faults], [])
})
