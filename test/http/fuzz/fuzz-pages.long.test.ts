import { Pool } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import { accountEndpoints } from '../../../src/routes/account/index.ts'
import { proofFor } from '../../../src/routes/account/visitor.ts'
import { livekitEndpoints } from '../../../src/routes/livekit/index.ts'
import { oauthEndpoints } from '../../../src/routes/oauth/index.ts'
import type { Json } from '../../support/api.ts'
import { type Case, casesOf } from './cases.ts'
import { diceOf } from './values.ts'
import { type Answer, type Request, send } from './wire.ts'
import { type Actor, openWorld, type Scene, type World } from './world.ts'

/** The authorisation server, the account page and the authorisation of calls, asked badly. `FUZZ_SEED` and `FUZZ_CASES` as beside this. */

const SEED = Number(process.env.FUZZ_SEED ?? 20_190_611)
const CASES = Number(process.env.FUZZ_CASES ?? 60)
const SLOWEST_MS = 2_000
const ORIGIN = 'http://localhost:8008'
const ENDPOINTS = [...oauthEndpoints, ...accountEndpoints, ...livekitEndpoints]

/** What a refusal may leave: that somebody was there, and an authorisation that a client is told has failed. Archives are made meanwhile. */
const MAY_WRITE = /^(?:web_session: updates|oauth_state: |own_data_archive: )/

let world: World
let pool: Pool
/** Of whom a browser is signed in, what its cookie holds. */
const secrets = new Map<Actor, string>()

beforeAll(async () => {
  console.info(`fuzz: seed ${SEED}, ${CASES} cases of each of ${ENDPOINTS.length} endpoints`)
  const livekit = { url: 'wss://livekit.example.org', api_key: 'key', api_secret: 'a secret of 32 characters or more' }
  world = await openWorld({
    public_base_url: ORIGIN,
    calls: { delayed_events: { max_scheduled: 0 }, livekit: { ...livekit, api_url: 'http://127.0.0.1:1' } },
  })
  world.secrets.add(livekit.api_secret)
  pool = new Pool(world.server.baseUrl, { connections: 1, headersTimeout: 20_000 })
}, 60_000)

afterAll(async () => {
  await pool?.destroy()
  await world?.close()
})

async function signIn(actor: Actor, { userId }: { readonly userId: string }): Promise<string | undefined> {
  const { webSessions } = world.server.services.oauth
  if (!['owner', 'member', 'stranger'].includes(actor)) return undefined
  const known = secrets.get(actor)
  if (known !== undefined && (await webSessions.find(known)) !== undefined) return known
  const secret = await webSessions.signInAs(userId as UserId)
  world.secrets.add(secret)
  secrets.set(actor, secret)
  await world.written()
  return secret
}

/** The request as a browser sends it: with a cookie in place of a token, and its form with the mark of this browser where it has one. */
function asBrowser({ request, actor }: Case, secret: string | undefined): Request {
  const { authorization: _, ...headers } = request.headers
  const mark = secret === undefined ? 'x' : proofFor({ secret }, 'form')
  const cookie = secret === undefined ? {} : { cookie: `hearth-account=${secret}` }
  const form = fieldsOf(request.body, mark)
  const isForm = form !== undefined && actor !== 'unknown' && !('content-type' in headers)
  return {
    ...request,
    path: request.path.replace('form=x', `form=${mark}`),
    headers: { ...headers, ...cookie, ...(isForm && { 'content-type': 'application/x-www-form-urlencoded' }) },
    body: isForm ? form : request.body,
  }
}

function fieldsOf(body: Request['body'], mark: string): string | undefined {
  try {
    const read: Json = JSON.parse(String(body))
    if (typeof read !== 'object' || read === null || Array.isArray(read)) return undefined
    const texts = Object.entries(read).map(([name, value]): [string, string] => [
      name,
      name === 'form' && value === 'x' ? mark : typeof value === 'string' ? value : JSON.stringify(value),
    ])
    return new URLSearchParams(texts).toString()
  } catch {
    return undefined
  }
}

const isHttpGarbage = ({ name }: Case) => /half a|two lengths|length and chunks|Latin-1|no slash|\x80/.test(name)

function faultsOf(answer: Answer, one: Case, written: readonly string[]): string[] {
  const { status, headers, text } = answer
  const found = [...world.secrets].filter((secret) => text.includes(secret)).map(() => 'shows a secret')
  if (status === 0) return isHttpGarbage(one) ? found : [...found, 'was not answered']
  // LiveKit is not there.
  if (status >= 500 && !(one.request.path.includes('livekit') && status === 502)) found.push('is our fault')
  const location = String(headers.location ?? '/')
  if (!location.startsWith('/') && !location.startsWith(`${ORIGIN}/`)) found.push(`leads to ${location}`)
  if (status < 400) return found
  const type = String(headers['content-type'])
  if (/^text\/html/.test(type)) {
    if (!/<h1>[^<]/.test(text)) found.push('is a page without a heading')
    if (!/frame-ancestors 'none'/.test(String(headers['content-security-policy']))) found.push('may be framed')
  } else if (/^application\/json/.test(type)) {
    const body: Json = JSON.parse(text)
    if (typeof body.error !== 'string' || body.error === '') found.push('has no error')
  } else found.push(`is ${type}`)
  // A body that nobody wants is read after the answer was begun.
  const kept = written.filter((note) => !MAY_WRITE.test(note) && !isHttpGarbage(one))
  return kept.length === 0 ? found : [...found, `wrote: ${kept.join(', ')}`]
}

async function judge(one: Case, scene: Scene): Promise<string[]> {
  const secret = await signIn(one.actor, scene.accounts[one.actor])
  const request = asBrowser(one, secret)
  const begun = performance.now()
  const answer = await send(pool, world.server.baseUrl, request)
  const ms = performance.now() - begun
  const found = faultsOf(answer, one, await world.written())
  if (ms > SLOWEST_MS) {
    const again = performance.now()
    await send(pool, world.server.baseUrl, request)
    if (performance.now() - again > SLOWEST_MS) found.push(`took ${Math.round(ms)} ms`)
  }
  const asked = `[${one.name}] ${request.method} ${request.path.slice(0, 300)} ${String(request.body ?? '').slice(0, 200)}`
  return found.map((fault) => `${fault}: ${asked}: ${answer.status} ${answer.text.slice(0, 200)}`)
}

describe('every endpoint of signing in, of the account and of calls, asked badly', () => {
  it.each(ENDPOINTS.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const))(
    '%s',
    async (line, endpoint) => {
      let scene = await world.scene()
      await world.written()
      const faults: string[] = []
      for (const one of casesOf(endpoint, () => scene, diceOf(SEED, line), CASES)) {
        faults.push(...(await judge(one, scene)))
        const { status } = await world.api.request('GET', '/account/whoami', { token: scene.accounts.owner.token })
        if (status === 200) continue
        scene = await world.scene()
        await world.written()
      }
      expect(faults).toEqual([])
      await world.bystanderSends()
    },
    60_000 + CASES * 200,
  )
})

it('the log holds no secret and no failure', () => {
  const log = world.log()
  expect([...world.secrets].filter((secret) => log.includes(secret))).toEqual([])
  expect(log.split('\n').filter((line) => line !== '' && JSON.parse(line).level >= 50)).toEqual([])
})
