// What the tests of pages in Chromium share.
import assert from 'node:assert/strict'
import { chromium } from 'playwright-core'

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })

export const stage = async (what) => {
  const response = await fetch(`${process.env.ONETURN_STAGE}/${what}`, { method: 'POST' })
  assert.equal(response.status, 200, await response.text())
}

// takeover kills the worker that runs, does something, and starts another one.
let [running, next] = ['worker', 'another']
export const takeover = async (meanwhile) => {
  await stage(`kill/${running}`)
  await meanwhile()
  await stage(`start/${next}`);
  [running, next] = [next, running]
}

// open opens a tab, which notes its requests, and what must not happen: errors, dialogs and new windows. Of what is logged, it
// notes the errors for which logged returns true.
export const open = async (context, url, { logged = () => true } = {}) => {
  const tab = await context.newPage()
  tab.setDefaultTimeout(30_000)
  Object.assign(tab, { faults: [], requests: [] })
  tab.on('pageerror', (error) => tab.faults.push(String(error)))
  tab.on('console', (message) => { if (message.type() === 'error' && logged(message.text())) tab.faults.push(message.text()) })
  tab.on('dialog', (dialog) => { tab.faults.push(`a dialog: ${dialog.message()}`); dialog.dismiss() })
  tab.on('popup', (popup) => tab.faults.push(`a window: ${popup.url()}`))
  tab.on('request', (request) => tab.requests.push({ method: request.method(), url: request.url(), body: parsed(request.postData()) }))
  await tab.goto(url)
  return tab
}
const parsed = (text) => { try { return JSON.parse(text) } catch { return undefined } }

// hosts are those that a tab has sent requests to.
export const hosts = (tab) => new Set(tab.requests.map(({ url }) => new URL(url).origin).filter((origin) => origin !== 'null'))

export const question = (tab) => tab.locator('.question')
export const answered = (tab, text) => tab.locator('.result', { hasText: text }).first().waitFor()
