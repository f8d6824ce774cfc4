import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { type AppserviceClient, createAppserviceClient } from '../../src/outbound/appservice.ts'
import { createGuardedClient, type GuardedClient } from '../../src/outbound/http.ts'
import { type Behaviour, startService, TAKES_ALL, type TestService } from '../appservices/service.ts'
import { outboundConfig } from '../support/outside.ts'
import { waitUntil } from '../support/wait.ts'

const HS_TOKEN = 'a secret/token'
const SHORT_MS = 300
let service: TestService
let elsewhere: TestService
let guarded: GuardedClient
let client: AppserviceClient
beforeAll(async () => {
  ;[service, elsewhere] = [await startService(), await startService()]
  guarded = await createGuardedClient({ config: outboundConfig({}), log: pino({ level: 'silent' }) })
})
afterAll(async () => {
  await guarded.close()
  await service.close()
  await elsewhere.close()
})
beforeEach(() => {
  client = createAppserviceClient({ client: guarded, dialect: 'auto', now: Date.now })
  service.behave(TAKES_ALL)
  service.heard.length = 0
})

const target = () => ({ url: service.url, hs_token: HS_TOKEN })
const ask = (timeoutMs = SHORT_MS) =>
  client.ask(target(), { operation: 'GET A/users/{userId}', path: '/users/x', legacyPath: '/users/x', timeoutMs })
const tell = (timeoutMs = SHORT_MS) =>
  client.tell(target(), {
    operation: 'PUT A/transactions/{txnId}',
    ...{ path: '/transactions/1', legacyPath: '/transactions/1' },
    ...{ body: '{"events":[]}', timeoutMs },
  })
const by =
  (act: (raw: Parameters<Behaviour>[1]) => unknown): Behaviour =>
  (_, raw) => {
    act(raw)
    return undefined
  }
const half = (status: number) => by(({ response }) => response.writeHead(status).write('{"half":'))

describe('a service that hangs', () => {
  test.each([
    ['before it answers', 'ask', by(() => {})],
    ['before it answers', 'tell', by(() => {})],
    ['half-way through its answer', 'ask', half(200)],
    ['half-way through a refusal', 'tell', half(500)],
  ] as const)('%s: is given up in time (%s)', async (_, how, behaviour) => {
    service.behave(behaviour)
    const start = performance.now()
    const answer = await (how === 'ask' ? ask() : tell())
    expect(answer).toMatchObject({ kind: 'unanswered', isTimeout: true })
    expect(performance.now() - start).toBeLessThan(30_000)
  })

  test('half-way through an answer of which the status is all that matters: has answered', async () => {
    service.behave(half(200))
    expect(await tell()).toMatchObject({ kind: 'answered', status: 200 })
  })
})

describe('an answer that is not to be had', () => {
  it('of 100 MB is broken off long before its end', async () => {
    let written = 0
    let ended = false
    service.behave(
      by(({ response }) => {
        response.writeHead(200)
        response.on('close', () => {
          ended = true
        })
        const more = () => {
          if (response.destroyed || written >= 100e6) return response.end()
          written += 65_536
          return response.write(Buffer.alloc(65_536, 32), more)
        }
        more()
      }),
    )
    expect(await ask(5_000)).toMatchObject({ kind: 'unanswered', isTimeout: false })
    await waitUntil('the connection to end', () => ended)
    expect(written).toBeLessThan(50e6)
  })

  it('redirects: the token goes nowhere else', async () => {
    service.behave(by(({ response }) => response.writeHead(302, { location: `${elsewhere.url}/x` }).end()))
    for (const answer of [await ask(), await tell()]) expect(answer.kind).toBe('unanswered')
    expect(elsewhere.heard).toEqual([])
  })

  it('is no JSON: has a status and no body', async () => {
    service.behave(by(({ response }) => response.writeHead(200).end('<html>')))
    expect(await ask()).toEqual({ kind: 'answered', status: 200, body: undefined, text: '<html>' })
  })

  it('says why, and never the token', async () => {
    service.behave(by(({ response }) => response.destroy()))
    const answers = [
      await ask(),
      await client.ask(
        { ...target(), url: 'http://127.0.0.1:1' },
        { operation: 'POST A/ping', path: '/ping', body: '{}', timeoutMs: SHORT_MS },
      ),
    ]
    for (const answer of answers) {
      expect(answer).toMatchObject({ kind: 'unanswered', isTimeout: false, detail: expect.stringMatching(/.+/) })
      expect(JSON.stringify(answer)).not.toContain(encodeURIComponent(HS_TOKEN))
      expect(JSON.stringify(answer)).not.toContain(HS_TOKEN)
    }
  })
})

describe('which path is asked', () => {
  const paths = () => service.heard.map(({ path }) => path)
  const ALL = ['/_matrix/app/v1/users/x', '/_proto/app/v1/users/x', '/users/x']

  test.each([
    ['404 without a code', 404, ALL],
    ['404 M_UNRECOGNIZED', [404, { errcode: 'M_UNRECOGNIZED' }], ALL],
    ['405', 405, ALL],
    ['501', 501, ALL],
    ['404 M_NOT_FOUND, which is an answer', [404, { errcode: 'M_NOT_FOUND' }], ALL.slice(0, 1)],
    ['500', 500, ALL.slice(0, 1)],
    ['403', 403, ALL.slice(0, 1)],
  ] as const)('after %s', async (_, outcome, expected) => {
    service.behave(() => outcome as number)
    expect(await ask()).toMatchObject({ kind: 'answered', status: Array.isArray(outcome) ? outcome[0] : outcome })
    expect(paths()).toEqual(expected)
  })

  it('the older one for an hour, and then the newer ones first', async () => {
    let now = 0
    client = createAppserviceClient({ client: guarded, dialect: 'auto', now: () => now })
    service.behave(({ path }) => (path.startsWith('/_') ? 404 : [200, {}]))
    const asked = async (at: number) => {
      now = at
      service.heard.length = 0
      await ask()
      return paths()
    }
    expect(await asked(0)).toEqual(ALL)
    expect(await asked(3_599_999)).toEqual(['/users/x'])
    expect(await asked(3_600_000)).toEqual(ALL)
    expect(await asked(7_199_999)).toEqual(['/users/x'])
    service.behave(TAKES_ALL)
    expect(await asked(7_200_000)).toEqual(ALL.slice(0, 1))
    expect(await asked(90_000_000)).toEqual(ALL.slice(0, 1))
  })

  it('has the token in header and query', async () => {
    await ask()
    const [heard] = service.heard
    expect([heard!.authorization, heard!.query.get('access_token')]).toEqual([`Bearer ${HS_TOKEN}`, HS_TOKEN])
  })
})
