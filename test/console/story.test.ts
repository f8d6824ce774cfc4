import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PASSWORD } from '../support/api.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { CONSOLE, type ConsoleWorld, openConsoleWorld } from './world.ts'

const pictures = process.env.PICTURES

describe.skipIf(chromiumPath() === undefined)('an administrator with a browser', () => {
  let world: ConsoleWorld
  let browser: TestBrowser
  let page: Page
  const trouble: string[] = []

  beforeAll(async () => {
    world = await openConsoleWorld({ registration: { enabled: true } })
    browser = await openBrowser()
    const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 900 } })
    page = await context.newPage()
    page.on('console', (message) => trouble.push(message.text()))
    page.on('pageerror', (error) => trouble.push(String(error)))
    page.on('requestfailed', (request) => trouble.push(`${request.url()} ${request.failure()?.errorText}`))
  })
  afterAll(async () => {
    await browser.close()
    await world.close()
  })

  async function look(name: string): Promise<void> {
    if (pictures === undefined) return
    await mkdir(pictures, { recursive: true })
    for (const [shape, width, colorScheme] of [
      ['light', 1280, 'light'],
      ['dark', 1280, 'dark'],
      ['phone', 360, 'light'],
    ] as const) {
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: join(pictures, `${name}-${shape}.png`), fullPage: true })
    }
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.emulateMedia({ colorScheme: 'light' })
  }

  it('signs in', async () => {
    const alice = await world.person('alice')
    const bob = await world.person('bob')
    const { room_id } = await world.api.call('POST', '/createRoom', {
      token: alice.token,
      body: {
        name: 'Garden',
        topic: 'Things that grow',
        preset: 'public_chat',
        visibility: 'public',
        invite: [bob.userId],
      },
    })
    for (let i = 0; i < 20; i += 1)
      await world.api.call('PUT', `/rooms/${encodeURIComponent(room_id)}/send/m.room.message/t${i}`, {
        token: alice.token,
        body: { msgtype: 'm.text', body: `message ${i}` },
      })
    await page.goto(world.origin + CONSOLE)
    await page.getByLabel('User name or email address').fill('boss')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.getByText('Slowest of 100').waitFor()
    await look('overview')
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('link', { name: /@alice/ }).waitFor()
    await look('users')
    await page.getByRole('link', { name: /@alice/ }).click()
    await page.getByText('record of acts').waitFor()
    await look('user')
    await page.getByRole('button', { name: 'Deactivate' }).click()
    await page.getByRole('dialog').waitFor()
    await look('dialog')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByRole('button', { name: 'End', exact: true }).waitFor()
    await look('sessions')
    await page.getByRole('link', { name: 'Rooms', exact: true }).first().click()
    await page.getByRole('link', { name: /Garden/ }).waitFor()
    await look('rooms')
    await page.getByRole('link', { name: /Garden/ }).click()
    await page.getByText('Things that grow').waitFor()
    await look('room')
    await page.getByRole('link', { name: 'State' }).click()
    await page.getByText('m.room.create').waitFor()
    await look('state')
    await page.getByRole('link', { name: 'Members' }).click()
    await page.getByRole('cell', { name: 'join' }).waitFor()
    await look('members')
    expect(trouble).toEqual([])
  })
})
