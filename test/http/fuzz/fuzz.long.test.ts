import { Pool } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ERROR_STATUS } from '../../../src/core/errors.ts'
import type { Endpoint } from '../../../src/http/endpoint.ts'
import { wellKnownEndpoints } from '../../../src/routes/well-known/index.ts'
import { type Json, syncPath } from '../../support/api.ts'
import { CLIENT_API, PAGES } from '../../support/interfaces.ts'
import { type Case, casesOf } from './cases.ts'
import { diceOf } from './values.ts'
import { type Answer, send } from './wire.ts'
import { openWorld, type Scene, type World } from './world.ts'

/** `FUZZ_SEED=7 FUZZ_CASES=2000 npx vitest run test/http/fuzz/fuzz.long.test.ts` tries other cases, and more of them. */
const SEED = Number(process.env.FUZZ_SEED ?? 20_190_611)
const CASES = Number(process.env.FUZZ_CASES ?? 30)

/** Pages refuse by a page. */
const isPage = ({ path }: Endpoint) =>
  /^C\/auth|^C\/login\/sso|^\/_hearth\/sso|^\/policies|^CU\/hearth\/(?:validate|pushers)/.test(path)

const ENDPOINTS: readonly Endpoint[] = [
  ...[...CLIENT_API, ...PAGES].filter((endpoint) => !isPage(endpoint)),
  ...wellKnownEndpoints,
]

/** They have nothing to give on a server that is configured as this one. */
const ALWAYS_REFUSED = new Set([
  'POST C/refresh',
  'POST C/account/deactivate',
  'GET C/voip/turnServer',
  'GET C1/auth_metadata',
  'PUT CU/org.matrix.msc3814.v1/dehydrated_device',
  'GET CU/org.matrix.msc3814.v1/dehydrated_device',
  'DELETE CU/org.matrix.msc3814.v1/dehydrated_device',
  'GET CU/org.matrix.msc3814.v1/dehydrated_device/{deviceId}/events',
  'POST CU/org.matrix.msc3814.v1/dehydrated_device/{deviceId}/events',
  'GET C1/rtc/transports',
  'GET C1/rendezvous/{rendezvousId}',
  'PUT C1/rendezvous/{rendezvousId}',
  'DELETE C1/rendezvous/{rendezvousId}',
  'POST CU/org.matrix.msc4108/rendezvous',
  'GET CU/org.matrix.msc4108/rendezvous/{rendezvousId}',
  'PUT CU/org.matrix.msc4108/rendezvous/{rendezvousId}',
  'DELETE CU/org.matrix.msc4108/rendezvous/{rendezvousId}',
  'PUT C/rooms/{roomId}/delayed_event/{eventType}/{txnId}',
  'GET C1/delayed_events/{delayId}',
  'POST C1/delayed_events/{delayId}/{action}',
  'POST CU/org.matrix.msc4140/delayed_events/{delayId}',
  'GET /.well-known/{root}/server',
  'GET /.well-known/{root}/support',
  'GET /.well-known/{root}/policy_server',
  'GET C1/media/preview_url',
  'GET M/preview_url',
  'GET C/thirdparty/protocol/{protocol}',
  'GET C/thirdparty/location/{protocol}',
  'GET C/thirdparty/user/{protocol}',
  'GET C/thirdparty/location',
  'GET C/thirdparty/user',
  'POST C1/appservice/{appserviceId}/ping',
  'PUT C/directory/list/appservice/{networkId}/{roomId}',
  'DELETE C/directory/list/appservice/{networkId}/{roomId}',
])

/** For one answer on a busy machine, the second time too; the median is held to what users are promised. */
const SLOWEST_MS = 2000
const MEDIAN_MS = 100

const isHttpGarbage = ({ name }: Case) => /half a|two lengths|length and chunks|Latin-1|no slash|\x80/.test(name)

let world: World
let pool: Pool
const refusalMs: number[] = []

beforeAll(async () => {
  console.info(`fuzz: seed ${SEED}, ${CASES} cases of each of ${ENDPOINTS.length} endpoints`)
  world = await openWorld()
  pool = new Pool(world.server.baseUrl, { connections: 1, headersTimeout: 20_000 })
})

afterAll(async () => {
  await pool?.destroy()
  await world?.close()
})

/** The answer, and how long it took; the better of two times if the first is too long. */
async function ask({ request }: Case): Promise<{ answer: Answer; ms: number }> {
  const origin = world.server.baseUrl
  const begun = performance.now()
  const answer = await send(pool, origin, request)
  const ms = performance.now() - begun
  if (ms < SLOWEST_MS) return { answer, ms }
  const again = performance.now()
  await send(pool, origin, request)
  return { answer, ms: Math.min(ms, performance.now() - again) }
}

const isChallenge = (body: Json) => Array.isArray(body?.flows) && typeof body.session === 'string'

/** What every refusal must be. Gives what is wrong with it. */
function faultsOf({ status, headers, text }: Answer, { errcodes, request: { method } }: Case): string[] {
  const body = jsonOf(text)
  const faults: string[] = []
  if (status >= 500 && !isOthersFault(status, body?.errcode)) faults.push('is our fault')
  if (status === 405 && String(headers.allow).includes(method)) faults.push('allows what it refuses')
  if (headers['access-control-allow-origin'] !== '*') faults.push('has no CORS headers')
  if (!/^application\/json/.test(String(headers['content-type']))) faults.push('is not said to be JSON')
  if (isChallenge(body)) return faults
  if (typeof body?.error !== 'string' || body.error === '') faults.push('has no error text')
  const usual = ERROR_STATUS[body?.errcode as keyof typeof ERROR_STATUS]
  if (usual === undefined) faults.push(`has the errcode ${body?.errcode}`)
  else if (!isPlausible(status, body.errcode, usual)) faults.push(`has the status ${status} for ${body.errcode}`)
  if (errcodes && !errcodes.includes(body?.errcode)) faults.push(`should be ${errcodes.join(' or ')}`)
  return faults
}

/** Servers that a request names are not there. */
const isOthersFault = (status: number, errcode: unknown): boolean =>
  errcode === 'M_CONNECTION_FAILED' || (errcode === 'M_UNKNOWN' && status === 502)

/** Other statuses than the code's own, where the specification wants them. */
function isPlausible(status: number, errcode: string, usual: number): boolean {
  if (errcode === 'M_UNKNOWN') return [400, 502].includes(status)
  if (errcode === 'M_TOO_LARGE') return [usual, 414, 431].includes(status)
  if (errcode === 'M_UNRECOGNIZED' || errcode === 'M_BAD_JSON') return status === usual || status === 405
  // What an identity server says is passed on: that an address is bound to nobody but whose token it is.
  if (errcode === 'M_UNAUTHORIZED') return status === usual || status === 403
  return status === usual
}

function jsonOf(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function leaksIn(text: string): string[] {
  return [...world.secrets].filter((secret) => text.includes(secret)).map(() => 'shows a secret')
}

const isRefusal = ({ status }: Answer) => (status < 200 || status > 299) && status !== 304

/** Whether the endpoint, when it succeeds, ends what the next cases need: sessions, memberships. */
const usesUp = ({ method, path }: Endpoint) =>
  method !== 'GET' && /logout|device|\/(kick|unban|leave|forget)$/.test(path)

/** Notes everything that is wrong with how one case was answered, and tells whether it was accepted. */
async function judge(one: Case, faults: string[]): Promise<boolean> {
  const { answer, ms } = await ask(one)
  const written = await world.written()
  const found = [
    ...leaksIn(answer.text),
    ...(isRefusal(answer) ? refusalFaults(answer, one, written) : mercyFaults(one)),
  ]
  if (ms > SLOWEST_MS) found.push(`took ${Math.round(ms)} ms`)
  faults.push(...found.map((fault) => `${fault}: ${describeCase(one)}: ${answer.status} ${answer.text.slice(0, 200)}`))
  if (isRefusal(answer)) {
    refusalMs.push(ms)
    return false
  }
  const token = jsonOf(answer.text)?.access_token
  if (typeof token === 'string') world.secrets.add(token)
  return true
}

function refusalFaults(answer: Answer, one: Case, written: readonly string[]): string[] {
  if (answer.status === 0) return isHttpGarbage(one) ? [] : ['was not answered']
  const isPure = written.length === 0 || isChallenge(jsonOf(answer.text))
  return [...faultsOf(answer, one), ...(isPure ? [] : [`wrote: ${written.join(', ')}`])]
}

const mercyFaults = ({ errcodes }: Case) => (errcodes ? [`was accepted; should be ${errcodes.join(' or ')}`] : [])

function describeCase({ name, request: { method, path, body } }: Case): string {
  const sent = body === undefined ? '' : ` ${body.toString('latin1' as never).slice(0, 300)}`
  return `[${name}] ${method} ${path.slice(0, 300)}${sent}`
}

describe('every endpoint, asked badly', () => {
  const lines = ENDPOINTS.map((endpoint): [string, Endpoint] => [`${endpoint.method} ${endpoint.path}`, endpoint])

  it.each(lines)(
    '%s',
    async (line, endpoint) => {
      let scene: Scene = await world.scene()
      await world.written()
      const faults: string[] = []
      let accepted = 0
      for (const one of casesOf(endpoint, () => scene, diceOf(SEED, line), CASES)) {
        if (!(await judge(one, faults))) continue
        accepted += 1
        if (!usesUp(endpoint)) continue
        scene = await world.scene()
        await world.written()
      }
      expect(faults).toEqual([])
      // What is always refused was never tried in earnest.
      if (!ALWAYS_REFUSED.has(line)) expect(accepted).toBeGreaterThan(0)
      await world.bystanderSends()
    },
    60_000 + CASES * 100,
  )
})

describe('after all of it', () => {
  it('the server answers, and everyone reads their rooms', async () => {
    const { accounts } = await world.scene()
    expect((await world.api.request('GET', '/_matrix/client/versions')).status).toBe(200)
    for (const { token } of [accounts.owner, accounts.member, accounts.stranger, accounts.guest]) {
      const { status, body } = await world.api.request('GET', syncPath({}), { token })
      expect([status, typeof body.next_batch]).toEqual([200, 'string'])
      for (const roomId of Object.keys(body.rooms?.join ?? {})) {
        for (const rest of ['messages?dir=b', 'state', 'members', 'joined_members']) {
          const path = `/rooms/${encodeURIComponent(roomId)}/${rest}`
          expect((await world.api.request('GET', path, { token })).status, path).toBe(200)
        }
      }
    }
  }, 60_000)

  it('refusals were quick', () => {
    const sorted = refusalMs.toSorted((left, right) => left - right)
    expect(sorted.length).toBeGreaterThan(ENDPOINTS.length)
    expect(sorted[sorted.length >> 1]).toBeLessThan(MEDIAN_MS)
  })

  it('the log holds no secret and no failure', () => {
    const log = world.log()
    expect([...world.secrets].filter((secret) => log.includes(secret))).toEqual([])
    expect(log.split('\n').filter((line) => line !== '' && JSON.parse(line).level >= 50)).toEqual([])
  })
})
