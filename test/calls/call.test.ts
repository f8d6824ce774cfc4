import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Account, type Api, createRoom, type Json, join, openApi, register } from '../support/api.ts'
import { chromiumPath, launchBrowser } from '../support/browser.ts'
import { type Coturn, hasCoturn, startCoturn } from '../support/coturn.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { CALL_PAGE } from './call-page.ts'

const SECRET = 'between two'
/** Pictures and tones that Chromium makes itself, and loopback as a network. */
const FLAGS = [
  '--use-fake-ui-for-media-stream',
  '--use-fake-device-for-media-stream',
  '--allow-loopback-in-peer-connection',
  '--autoplay-policy=no-user-gesture-required',
]

describe.skipIf(chromiumPath() === undefined || !hasCoturn())('a call of two browsers', () => {
  let coturn: Coturn
  let server: TestServer
  let api: Api
  let browser: Browser
  let alice: Account
  let bob: Account
  let roomId: string

  beforeAll(async () => {
    coturn = await startCoturn({ secret: SECRET })
    server = await startServer({ calls: { turn: { uris: [...coturn.uris], shared_secret: SECRET } } })
    api = openApi(server.baseUrl)
    alice = await register(api, 'alice')
    bob = await register(api, 'bob')
    roomId = await createRoom(api, alice.token, { preset: 'public_chat' })
    await join(api, bob.token, roomId)
    browser = await launchBrowser(FLAGS)
  })
  afterAll(async () => {
    await browser?.close()
    await api?.close()
    await server?.close()
    await coturn?.close()
  })

  /** Each in a browser context of its own. */
  async function open({ token, deviceId }: Account): Promise<Page> {
    const page = await (await browser.newContext({ permissions: ['camera', 'microphone'] })).newPage()
    // A page of the homeserver's origin, which cameras need.
    await page.route('**/telephone', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }))
    await page.goto(`${server.baseUrl}/telephone`)
    const details = JSON.stringify({ token, roomId, callId: 'call1', partyId: deviceId })
    await page.evaluate(`${CALL_PAGE}; window.telephone = new Telephone(${details})`)
    return page
  }

  const does = (page: Page, what: string): Promise<Json> => page.evaluate(`window.telephone.${what}()`)

  it('flows through the TURN server, with sound and pictures both ways', async () => {
    const [calling, called] = [await open(alice), await open(bob)]
    await Promise.all([does(called, 'pickUp'), does(calling, 'call')])
    for (const page of [calling, called]) {
      const heard = await waitUntil(
        'pictures',
        async () => {
          const now = await does(page, 'hears')
          return now.frames > 10 && now.audioPackets > 20 && now
        },
        { timeoutMs: 40_000, everyMs: 200 },
      )
      expect(heard).toMatchObject({ state: 'connected', ways: ['relay', 'relay'] })
    }
    // The server itself says whose traffic it has relayed.
    for (const { userId } of [alice, bob]) expect(coturn.output()).toContain(userId)
    await does(calling, 'hangUp')
    const { chunk } = await api.call('GET', `/rooms/${encodeURIComponent(roomId)}/messages?dir=b&limit=3`, {
      token: bob.token,
    })
    expect(chunk.map(({ type }: Json) => type)).toEqual(['m.call.hangup', 'm.call.answer', 'm.call.invite'])
  })
})
