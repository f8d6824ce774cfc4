import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../support/api.ts'
import { leadsTo } from '../support/browsing.ts'
import { fill, readScript } from '../support/rust-sdk/script.ts'
import { type OauthWorld, openOauthWorld, whoami } from './world.ts'

/**
 * The requests by which clients on matrix-rust-sdk signed in, sent again to a server of today. `npm run interop -- rust-sdk --only sign-in
 * --record-sign-in test/oauth/rust-sdk.requests.jsonl` recorded them.
 */
const script = readScript(readFileSync(new URL('./rust-sdk.requests.jsonl', import.meta.url), 'utf8'))
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const MINUTE_MS = 60_000

let world: OauthWorld
/** By the number of the request. */
const answers = new Map<string, { status: number; body: Json }>()
const sent: { id: number; body: Json; status: number }[] = []
const problems: string[] = []
let code = ''

const value = (name: string): string => {
  const [id = '', what = ''] = name.split(' ')
  const found = answers.get(id)?.body?.[what]
  if (found === undefined) problems.push(`${name} was not answered`)
  return String(found)
}

async function send(id: number, session: string, method: string, template: string, place: number | null) {
  const path = fill(template, value)
  const body = place === null ? undefined : JSON.parse(fill(JSON.stringify(script.bodies[place]), value))
  if (body?.form?.code === '') body.form.code = code
  const headers = session === '' ? {} : { authorization: `Bearer ${fill(session, value)}` }
  const answer = await fetch(world.origin + path, {
    method,
    headers: body === undefined || body.form ? headers : { ...headers, 'content-type': 'application/json' },
    ...(body && { body: body.form ? new URLSearchParams(body.form) : JSON.stringify(body) }),
  })
  const text = await answer.text()
  answers.set(String(id), { status: answer.status, body: text.startsWith('{') ? JSON.parse(text) : text })
  sent.push({ id, body, status: answer.status })
}

beforeAll(async () => {
  world = await openOauthWorld({}, 'whole')
  await world.account('anna')
  const browser = world.browser()
  for (const line of script.lines) {
    if (line[0] === 'start') {
      await send(...(line.slice(1) as [number, string, string, string, number | null]))
    } else if (line[0] === 'end') {
      const [, id, , status] = line as [string, number, string, number]
      const answer = answers.get(String(id))
      if (answer?.status !== status) problems.push(`${id}: ${JSON.stringify(answer)}, was ${status}`)
    } else if (line[0] === 'expire') {
      world.advance(6 * MINUTE_MS)
    } else {
      const [decision = '', address = ''] = fill(line[0], value).split(' ')
      let page = await browser.open(address)
      if (page.url.pathname === '/_hearth/account/sign-in') page = await browser.signIn(page, 'anna')
      const to = leadsTo(await browser.submit(page, { decision }))
      code = /[?&]code=([^&]+)/.exec(to)?.[1] ?? ''
    }
  }
}, 60_000)
afterAll(() => world.close())

/** The last tokens that were given for a grant. */
function tokensBy(grant: string): Json {
  const { id } = sent.findLast(({ status, body }) => status === 200 && body?.form?.grant_type === grant)!
  return answers.get(String(id))!.body
}

describe('the clients on matrix-rust-sdk that sign in', () => {
  it('are answered as they were', () => {
    expect(problems).toEqual([])
  })

  it('sign in by a code, renew their tokens, and come in by the code of another device', () => {
    for (const grant of ['authorization_code', 'refresh_token', DEVICE_GRANT]) {
      expect(tokensBy(grant), grant).toEqual({
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: expect.any(Number),
        refresh_token: expect.any(String),
        scope: expect.stringMatching(/^urn:matrix:\S+ urn:matrix:\S+$/),
      })
    }
  })

  it('leave one session: the device that signed out is gone', async () => {
    const { access_token: newest } = tokensBy('refresh_token')
    const { access_token: ended } = tokensBy(DEVICE_GRANT)
    expect((await whoami(world, ended)).status).toBe(401)
    const { device_id: own } = (await whoami(world, newest)).body
    const { devices } = await world.api.call('GET', '/devices', { token: newest })
    // The other is that of the account's registration.
    expect(devices).toHaveLength(2)
    expect(devices.map(({ device_id }: Json) => device_id)).toContain(own)
  })
})
