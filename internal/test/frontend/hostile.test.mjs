// Hostile texts of users, agents and tools in both pages of examples/12-frontend: nothing in them is executed, with the policy of the
// page and without.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { launch, open, question } from './browser.mjs'

const texts = JSON.parse(process.env.ONETURN_HOSTILE)
const copilotkit = (query) => ({ path: `/copilotkit/${query}`, field: 'textarea', send: (tab) => tab.locator('textarea').press('Enter'), ready: (tab) => tab.locator('textarea').waitFor() })
const pages = {
  plain: { path: '/', field: '#text', send: (tab) => tab.locator('#send').click(), ready: (tab) => tab.locator('#status', { hasText: /^connected$/ }).waitFor() },
  CopilotKit: copilotkit(''),
  'CopilotKit, with a tool of the page': copilotkit('?tool'),
}

let browser
before(async () => { browser = await launch() })
after(() => browser?.close())

// inspect looks for what could run a script, now or with a click, and clicks on all links.
const inspect = async (tab) => {
  const found = await tab.evaluate(() => {
    const found = []
    for (const element of document.body.querySelectorAll('*')) {
      if (['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'BASE', 'META'].includes(element.tagName)) found.push(element.outerHTML.slice(0, 300))
      for (const { name, value } of element.attributes) {
        if (/^on/i.test(name) || name === 'srcdoc' || (/^(href|src|action|formaction|xlink:href)$/i.test(name) && /^\s*(javascript|vbscript|data:text)/i.test(value))) found.push(`${element.tagName} ${name}=${value}`)
      }
    }
    if (document.getElementById('injected')) found.push('an element of a text')
    return found
  })
  assert.deepEqual(found, [])
  for (const link of await tab.locator('[role=main] a, #messages a, #chat a, #chat [data-streamdown=link]').all()) await link.dispatchEvent('click')
  assert.equal(await tab.evaluate(() => window.executed), undefined)
  assert.equal(await tab.evaluate(() => ({}).executed), undefined)
}

for (const [name, { path, field, send, ready }] of Object.entries(pages)) {
  for (const bypassCSP of [false, true]) {
    test(`${name}, ${bypassCSP ? 'without' : 'with'} its policy`, { timeout: 90_000 }, async () => {
      const context = await browser.newContext({ bypassCSP })
      const stolen = []
      await context.route('https://thief.example/**', (route) => {
        stolen.push(route.request().url())
        return route.abort()
      })
      const chat = randomUUID()
      const tab = await open(context, `${process.env.ONETURN_PAGE}${path}#${chat}`)
      await ready(tab)
      await tab.locator(field).fill(texts.join('\n\n'))
      for (let tries = 0; await tab.locator(field).inputValue(); tries++) {
        assert.ok(tries < 300, 'the text is not sent')
        await send(tab)
        await tab.waitForTimeout(100)
      }
      await question(tab).waitFor()
      await inspect(tab)
      const written = await fetch(`${process.env.ONETURN_AGENT}/${chat}`, { method: 'POST' })
      assert.equal(written.status, 200, await written.text())
      await tab.reload()
      await question(tab).waitFor()
      await tab.getByText('formula').first().waitFor()
      if (path !== '/' && bypassCSP) await tab.locator('svg[aria-roledescription]').first().waitFor() // the diagram
      await inspect(tab)
      await question(tab).getByText('Approve').first().click()
      await tab.locator('.result', { hasText: 'onerror' }).first().waitFor()
      await question(tab).waitFor({ state: 'detached' })
      await inspect(tab)
      // Only the policy of the page stops pictures of Markdown; they run nothing.
      assert.deepEqual(stolen.filter((url) => !(bypassCSP && url.endsWith('/pixel.png'))), [])
      assert.deepEqual(tab.faults.filter((fault) => /dialog|window|Error/.test(fault)), [])
      await context.close()
    })
  }
}
