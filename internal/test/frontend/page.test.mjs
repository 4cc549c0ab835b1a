// The page of examples/12-frontend in Chromium, while what it depends on is killed and started again.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { answered, launch, open as openTab, question, stage, takeover } from './browser.mjs'

let browser
before(async () => { browser = await launch() })
after(() => browser?.close())

// Errors that may be logged: of connections, which the tests cut, and of AG-UI's client when it looks whether it may compile code,
// which the policy of the page forbids.
const expected = /^(Failed to load resource|WebSocket connection to|Agent execution failed: TypeError: Failed to fetch|This document requires 'TrustedScript')/
const open = async (context, url = process.env.ONETURN_PAGE) => {
  const tab = await openTab(context, url, { logged: (text) => !expected.test(text) })
  await tab.locator('#status', { hasText: /^connected$/ }).waitFor()
  return tab
}
const write = async (tab, text) => {
  await tab.locator('#text').fill(text)
  await tab.locator('#send').click()
}

test('a question is shown, survives a reload and the death of its worker, and is answered', { timeout: 90_000 }, async () => {
  const context = await browser.newContext({ viewport: { width: 900, height: 820 } })
  const tab = await open(context)
  await write(tab, 'Spring sale\nEverything must go. Lamps are half the price until Sunday.')
  await question(tab).waitFor()
  assert.match(await question(tab).innerText(), /PostApproval[\s\S]*Lamps are half the price/)
  if (process.env.ONETURN_PICTURE) await tab.screenshot({ path: process.env.ONETURN_PICTURE })

  await tab.reload()
  await question(tab).waitFor()
  const second = await open(context, tab.url())
  await question(second).waitFor()
  assert.equal(await second.locator('#messages').innerText(), await tab.locator('#messages').innerText())

  await takeover(() => question(tab).getByText('Approve').click())
  await answered(tab, 'Spring sale is published.')
  await answered(second, 'Spring sale is published.')
  await question(tab).waitFor({ state: 'detached' })
  await question(second).waitFor({ state: 'detached' })
  assert.equal(await tab.locator('.user').count(), 1)
  assert.deepEqual([...tab.faults, ...second.faults], [])
  await context.close()
})

test('another gateway takes over, also while the answer is sent', { timeout: 90_000 }, async () => {
  const context = await browser.newContext()
  const tab = await open(context)
  await write(tab, 'Winter sale')
  await question(tab).waitFor()
  await stage('kill/gateway')
  await tab.locator('#status', { hasNotText: /^connected$/ }).waitFor()
  await question(tab).getByText('Reject').click()
  await stage('start/gateway')
  await answered(tab, 'Winter sale stays a draft')
  await tab.locator('#status', { hasText: /^connected$/ }).waitFor()
  assert.equal(await tab.locator('.user').count(), 1)
  assert.deepEqual(tab.faults, [])
  await context.close()
})

test('a page that was offline sends what was written, once', { timeout: 90_000 }, async () => {
  const context = await browser.newContext()
  const tab = await open(context)
  await context.setOffline(true)
  await tab.locator('#status', { hasText: 'offline' }).waitFor()
  await write(tab, 'Autumn sale')
  await context.setOffline(false)
  await question(tab).waitFor()
  const other = await open(await browser.newContext(), tab.url())
  await question(other).getByText('Approve').click()
  await answered(other, 'Autumn sale is published.')
  await answered(tab, 'Autumn sale is published.')
  assert.equal(await tab.locator('.user').count(), 1)
  assert.deepEqual([...tab.faults, ...other.faults], [])
  await other.context().close()
  await context.close()
})

test('a message waits for the orchestrator', { timeout: 90_000 }, async () => {
  const context = await browser.newContext()
  const tab = await open(context)
  await stage('kill/page')
  await write(tab, 'Summer sale')
  await tab.locator('.user').waitFor()
  await stage('start/page')
  await question(tab).getByText('Approve').click()
  await answered(tab, 'Summer sale is published.')
  assert.deepEqual(tab.faults, [])
  await context.close()
})
