import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { signJson, verifyJson } from '../../src/core/signing/json-signature.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { MAX_INSISTENT_KEY_REQUESTS } from '../../src/domain/limits.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { json, startTlsServer, type TlsServer } from '../support/tls-server.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
})

afterAll(() => street.close())

const ask = async (server: string, rest = ''): Promise<JsonObject[]> =>
  (await alpha.api.call('GET', `/_matrix/key/v2/query/${encodeURIComponent(server)}${rest}`)).server_keys

const askAll = (server_keys: object) => alpha.api.request('POST', '/_matrix/key/v2/query', { body: { server_keys } })

const keyRequests = ({ requests }: TlsServer) => requests.filter(({ url }) => url.includes('/key/v2/server')).length

const isSigned = (answer: JsonObject, by: string, { keyId, publicKey }: SigningKey) =>
  verifyJson(answer, by, keyId, publicKey)

/** A server with nothing but keys, which are good for so long. */
async function withKeys(
  validMs: number,
  test: (at: {
    name: string
    front: TlsServer
    answer: (changed?: object, by?: SigningKey) => JsonObject
  }) => Promise<void>,
): Promise<void> {
  const key = signingKeyFromSeed('ed25519:lone', randomBytes(32))
  const front = await startTlsServer(street.authority.issue(['localhost']), json({}, 503))
  const name = `localhost:${front.port}`
  const answer = (changed: object = {}, by = key) => {
    const verify_keys = { [key.keyId]: { key: key.publicKey } }
    const valid_until_ts = Date.now() + validMs
    return signJson({ server_name: name, verify_keys, old_verify_keys: {}, valid_until_ts, ...changed }, name, by)
  }
  try {
    await test({ name, front, answer })
  } finally {
    await front.close()
  }
}

describe('the keys of another server, asked of a third', () => {
  it('are told with the signatures of both, however they are asked for, and fetched once', async () => {
    const first = await ask(beta.name)
    const again = await ask(beta.name, `/${encodeURIComponent(beta.signingKey.keyId)}?minimum_valid_until_ts=1`)
    const { body } = await askAll({ [beta.name]: { 'ed25519:any': { minimum_valid_until_ts: 5 } } })
    expect(first).toHaveLength(1)
    expect(again).toEqual(first)
    expect(body).toEqual({ server_keys: first })
    const [answer] = first as [JsonObject]
    expect(answer.verify_keys).toEqual({ [beta.signingKey.keyId]: { key: beta.signingKey.publicKey } })
    expect(isSigned(answer, beta.name, beta.signingKey)).toBe(true)
    expect(isSigned(answer, alpha.name, alpha.signingKey)).toBe(true)
    expect(keyRequests(beta.front)).toBe(1)
  })

  it('are told in one answer for several, without those that never answered', async () => {
    const { body } = await askAll({ [beta.name]: {}, [alpha.name]: {}, 'localhost:1': {}, 'no server!': {} })
    const names = body.server_keys.map(({ server_name }: JsonObject) => server_name)
    expect(names.sort()).toEqual([alpha.name, beta.name].sort())
    expect((await askAll({})).body).toEqual({ server_keys: [] })
    expect(await ask('localhost:1')).toEqual([])
  })

  it('are fetched again when half of their time is over, and told on when the server is gone', async () => {
    await withKeys(1, async ({ name, front, answer }) => {
      front.handler = json(answer())
      const [first] = (await ask(name)) as [JsonObject]
      await ask(name)
      expect(keyRequests(front)).toBe(1)
      // Only that it was asked a moment ago keeps it from being asked again, and nobody remembers that after a start.
      front.handler = json({}, 503)
      await alpha.server.restart()
      expect(await ask(name)).toEqual([first])
      expect(keyRequests(front)).toBe(2)
    })
  })

  test('B17: are asked for again when what is known does not last as long as somebody needs', async () => {
    await withKeys(60_000, async ({ name, front, answer }) => {
      front.handler = json(answer())
      const [first] = (await ask(name)) as [JsonObject]
      await ask(name)
      expect(keyRequests(front)).toBe(1)
      const valid_until_ts = Date.now() + 3_600_000
      front.handler = json(answer({ valid_until_ts }))
      const needed = Number(first.valid_until_ts) + 60_000
      const [second] = (await ask(name, `?minimum_valid_until_ts=${needed}`)) as [JsonObject]
      expect(second.valid_until_ts).toBe(valid_until_ts)
      expect(keyRequests(front)).toBe(2)
      await ask(name, `?minimum_valid_until_ts=${needed}`)
      expect(keyRequests(front)).toBe(2)
    })
  })

  test('B17: are not asked for without end by whoever needs what the server does not give', async () => {
    await withKeys(60_000, async ({ name, front, answer }) => {
      front.handler = json(answer())
      const [first] = (await ask(name)) as [JsonObject]
      for (let times = 0; times < 20; times++) {
        const needed = Number(first.valid_until_ts) + 1 + times
        expect(await ask(name, `?minimum_valid_until_ts=${needed}`)).toEqual([first])
      }
      expect(keyRequests(front)).toBe(1 + MAX_INSISTENT_KEY_REQUESTS)
    })
  })

  it('are not told when the server has not signed them, or they are about another', async () => {
    const stranger = signingKeyFromSeed('ed25519:lone', randomBytes(32))
    const flaws = [
      (answer: (changed?: object, by?: SigningKey) => JsonObject) => answer({}, stranger),
      (answer: (changed?: object) => JsonObject) => answer({ server_name: beta.name }),
      (answer: (changed?: object) => JsonObject) => ({ ...answer(), valid_until_ts: Date.now() + 86_400_000 }),
    ]
    for (const flaw of flaws) {
      await withKeys(60_000, async ({ name, front, answer }) => {
        front.handler = json(flaw(answer))
        expect(await ask(name)).toEqual([])
        expect(keyRequests(front)).toBe(1)
      })
    }
  })

  it('are told of a hundred servers at most', async () => {
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`s${index}.example.org`, {}]))
    expect(await askAll(many)).toMatchObject({ status: 400, body: { errcode: 'M_TOO_LARGE' } })
    const bad = await alpha.api.request('GET', '/_matrix/key/v2/query/no%20server')
    expect(bad).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
  })
})
