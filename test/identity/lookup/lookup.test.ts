import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import { lookupHash } from '../../../src/core/lookup-hash.ts'
import { upsertBinding } from '../../../src/store/identity/bindings.ts'
import { type Answer, P1 } from '../identity-api.ts'
import { type People, startPeople } from '../people.ts'

const DAY = 24 * 3_600_000
const ALICE = '@alice:hs.test'
const BOB = '@bob:hs.test'

let people: People
let token: string
let pepper: string

beforeAll(async () => {
  people = await startPeople({ lookup: { max_addresses: 20, addresses_per_day: 60 } })
  await people.bind('alice@example.com', ALICE)
  await people.bind('BOB@example.com', BOB)
  token = await people.tokenOf('@asker:hs.test')
  pepper = (await people.identity.ask('GET', '/hash_details', { token })).body.lookup_pepper
})

afterAll(() => people.close())

const outcome = ({ status, body }: Answer) => [status, body.errcode]
const lookup = (body: object, by = token) => people.identity.ask('POST', '/lookup', { token: by, body })
let askers = 0
/** Somebody whose quota is whole. */
const somebody = () => people.tokenOf(`@asker${askers++}:hs.test`)

describe('seed 1, GET P2/hash_details', () => {
  it('200 {lookup_pepper, algorithms}; sha256 is among them', async () => {
    const { status, body } = await people.identity.ask('GET', '/hash_details', { token })
    expect([status, Object.keys(body).sort()]).toEqual([200, ['algorithms', 'lookup_pepper']])
    expect(body.algorithms).toEqual(['sha256', 'none'])
    expect(body.lookup_pepper).toMatch(/^[a-zA-Z0-9]{32}$/)
  })

  it('401 M_UNAUTHORIZED without a token', async () => {
    expect(outcome(await people.identity.ask('GET', '/hash_details'))).toEqual([401, 'M_UNAUTHORIZED'])
  })
})

describe('seed 1, POST P2/lookup', () => {
  it('sha256: mappings of what is bound; what is not is left out', async () => {
    const alice = lookupHash('alice@example.com', 'email', pepper)
    const bob = lookupHash('bob@example.com', 'email', pepper)
    const nobody = lookupHash('nobody@example.com', 'email', pepper)
    const addresses = [alice, nobody, bob, alice]
    expect(await lookup({ algorithm: 'sha256', pepper, addresses })).toMatchObject({
      status: 200,
      body: { mappings: { [alice]: ALICE, [bob]: BOB } },
    })
    expect((await lookup({ algorithm: 'sha256', pepper, addresses: [nobody] })).body).toEqual({ mappings: {} })
    expect((await lookup({ algorithm: 'sha256', pepper, addresses: [] })).body).toEqual({ mappings: {} })
  })

  it('incorrectly hashed or formatted entries do not match', async () => {
    const right = lookupHash('alice@example.com', 'email', pepper)
    const addresses = [
      ...['', ' ', 'alice@example.com', 'alice@example.com email', '\0', '__proto__', `${right}=`, `${right}A`],
      ...[right.toLowerCase(), lookupHash('alice@example.com', 'msisdn', pepper), 'A'.repeat(43)],
    ]
    expect(await lookup({ algorithm: 'sha256', pepper, addresses }, await somebody())).toMatchObject({
      status: 200,
      body: { mappings: {} },
    })
  })

  it('none: address and medium, in any case; the key is what was asked', async () => {
    const addresses = [
      'Alice@Example.COM email',
      'bob@example.com email',
      'bob@example.com msisdn',
      'bob',
      '__proto__ email',
      '\0 email',
    ]
    expect((await lookup({ algorithm: 'none', pepper, addresses })).body).toEqual({
      mappings: { 'Alice@Example.COM email': ALICE, 'bob@example.com email': BOB },
    })
  })

  it.each(['sha256', 'none'])(
    '%s with another pepper: 400 M_INVALID_PEPPER with the new details',
    async (algorithm) => {
      for (const wrong of ['matrixrocks', '', pepper.toUpperCase(), `${pepper} `]) {
        const answer = await lookup({ algorithm, pepper: wrong, addresses: [] })
        expect(answer).toMatchObject({
          status: 400,
          body: { errcode: 'M_INVALID_PEPPER', error: expect.any(String), lookup_pepper: pepper, algorithm: 'sha256' },
        })
      }
    },
  )

  it.each([
    [{ algorithm: 'sha512' }, 'M_INVALID_PARAM'],
    [{ algorithm: 'SHA256' }, 'M_INVALID_PARAM'],
    [{ algorithm: undefined }, 'M_MISSING_PARAMS'],
    [{ pepper: undefined }, 'M_MISSING_PARAMS'],
    [{ addresses: undefined }, 'M_MISSING_PARAMS'],
    [{ addresses: 'x' }, 'M_INVALID_PARAM'],
    [{ algorithm: 'sha256', pepper: '\0' }, 'M_INVALID_PEPPER'],
    [{ algorithm: 'none', pepper: 'a\0b' }, 'M_INVALID_PEPPER'],
    [{ addresses: [1] }, 'M_INVALID_PARAM'],
    [{ addresses: Array(21).fill('x') }, 'M_TOO_LARGE'],
  ])('%j gives 400 %s', async (change, errcode) => {
    expect(outcome(await lookup({ algorithm: 'none', pepper, addresses: [], ...change }))).toEqual([400, errcode])
  })

  it('none can be switched off', async () => {
    const strict = await startPeople({ lookup: { allow_plain: false } })
    const by = await strict.tokenOf(ALICE)
    const details = (await strict.identity.ask('GET', '/hash_details', { token: by })).body
    expect(details.algorithms).toEqual(['sha256'])
    const body = { algorithm: 'none', pepper: details.lookup_pepper, addresses: [] }
    expect(outcome(await strict.identity.ask('POST', '/lookup', { token: by, body }))).toEqual([400, 'M_INVALID_PARAM'])
    await strict.close()
  })

  it('facts S19: a user has a quota for a day, whatever token they use', async () => {
    const by = await somebody()
    const ask = (count: number) => lookup({ algorithm: 'sha256', pepper, addresses: Array(count).fill('x') }, by)
    for (const count of [20, 20, 19]) expect(await ask(count)).toMatchObject({ status: 200 })
    const refused = await ask(2)
    expect(outcome(refused)).toEqual([429, 'M_LIMIT_EXCEEDED'])
    expect(refused.body.retry_after_ms).toBeGreaterThan(DAY - 60_000)
    expect(await ask(1)).toMatchObject({ status: 200 })
    expect(await ask(0)).toMatchObject({ status: 200 })
    expect(await lookup({ algorithm: 'none', pepper, addresses: ['x'] }, await somebody())).toMatchObject({
      status: 200,
    })
    people.server.advance(DAY)
    expect(await ask(20)).toMatchObject({ status: 200 })
  })

  it('facts S19: whom the quota has stopped learns nothing by inviting either', async () => {
    const user = '@prober:hs.test'
    const by = await people.tokenOf(user)
    await people.bind('probed@example.com', '@probed:hs.test')
    const invite = (address: string) =>
      people.identity.ask('POST', '/store-invite', {
        token: by,
        body: { medium: 'email', address, room_id: '!r:hs.test', sender: user },
      })
    expect(outcome(await invite('probed@example.com'))).toEqual([400, 'M_THREEPID_IN_USE'])
    for (const count of [20, 20, 19]) {
      await lookup({ algorithm: 'sha256', pepper, addresses: Array(count).fill('x') }, by)
    }
    expect(outcome(await invite('probed@example.com'))).toEqual([429, 'M_LIMIT_EXCEEDED'])
    expect(outcome(await invite('nobody@example.com'))).toEqual([429, 'M_LIMIT_EXCEEDED'])
  })

  it('facts S19: no more than the quota is looked up by requests in parallel', async () => {
    const by = await somebody()
    const addresses = Array(10).fill('x')
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => lookup({ algorithm: 'sha256', pepper, addresses }, by)),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(6)
  })
})

it('the published vectors, through the service: pepper matrixrocks', async () => {
  const published = await startPeople()
  const { db } = published.server
  await db.query(`UPDATE identity_pepper SET pepper = 'matrixrocks'`)
  const bound = [
    ['email', 'alice@example.com', ALICE, '4kenr7N9drpCJ4AfalmlGQVsOn3o2RHjkADUpXJWZUc'],
    ['email', 'bob@example.com', BOB, 'LJwSazmv46n0hlMlsb_iYxI0_HXEqy_yj6Jm636cdT8'],
    ['msisdn', '18005552067', '@carl:hs.test', 'nlo35_T5fzSGZzJApqu8lgIudJvmOQtDaHtr-I4rU7I'],
  ] as const
  for (const [medium, address, userId] of bound) {
    await db.tx((tx) => upsertBinding(tx, { medium, address, user_id: userId as UserId, bound_at: 0 }))
  }
  const body = { algorithm: 'sha256', pepper: 'matrixrocks', addresses: bound.map(([, , , hash]) => hash) }
  const answer = await published.identity.ask('POST', '/lookup', { token: await published.tokenOf(ALICE), body })
  expect(answer.body.mappings).toEqual(Object.fromEntries(bound.map(([, , userId, hash]) => [hash, userId])))
  await published.close()
})

describe('seed 1, the first generation', () => {
  const ask = (query: Record<string, string>) =>
    people.identity.ask('GET', `${P1}/lookup?${new URLSearchParams(query)}`)
  const bulk = (threepids: unknown) => people.identity.ask('POST', `${P1}/bulk_lookup`, { body: { threepids } })

  it('GET P1/lookup: an association, or {}', async () => {
    people.server.advance(DAY)
    expect(await ask({ medium: 'email', address: 'ALICE@example.com' })).toMatchObject({
      status: 200,
      body: {
        medium: 'email',
        address: 'alice@example.com',
        mxid: ALICE,
        signatures: { localhost: expect.anything() },
      },
    })
    for (const address of ['nobody@example.com', '', '\0']) {
      expect(await ask({ medium: 'email', address })).toMatchObject({ status: 200, body: {} })
    }
    expect((await ask({ medium: 'msisdn', address: 'alice@example.com' })).body).toEqual({})
  })

  it('GET P1/lookup: both parameters are required, and given once', async () => {
    expect(outcome(await ask({ medium: 'email' }))).toEqual([400, 'M_MISSING_PARAMS'])
    expect(outcome(await ask({ address: 'x' }))).toEqual([400, 'M_MISSING_PARAMS'])
    const twice = await people.identity.ask('GET', `${P1}/lookup?medium=email&address=a&address=b`)
    expect(outcome(twice)).toEqual([400, 'M_INVALID_PARAM'])
  })

  it('POST P1/bulk_lookup: known mappings only, as they were asked for', async () => {
    people.server.advance(DAY)
    const asked = [
      ['email', 'Bob@example.com'],
      ['email', 'nobody@example.com'],
      ['msisdn', '18005552067'],
      ['email', '\0'],
    ]
    expect(await bulk(asked)).toMatchObject({
      status: 200,
      body: { threepids: [['email', 'Bob@example.com', BOB]] },
    })
    expect((await bulk([])).body).toEqual({ threepids: [] })
  })

  it('facts 25 and S18: it has the same limits', async () => {
    people.server.advance(DAY)
    expect(outcome(await bulk(Array(21).fill(['email', 'x'])))).toEqual([400, 'M_TOO_LARGE'])
    for (let round = 0; round < 3; round++)
      expect(await bulk(Array(20).fill(['email', 'x']))).toMatchObject({ status: 200 })
    expect(outcome(await bulk([['email', 'x']]))).toEqual([429, 'M_LIMIT_EXCEEDED'])
    expect(outcome(await ask({ medium: 'email', address: 'x' }))).toEqual([429, 'M_LIMIT_EXCEEDED'])
  })

  it.each([[['x']], [[['email']]], [[['email', 'x', 'y']]], [[['email', 1]]], ['x']])(
    'threepids %j: 400',
    async (threepids) => {
      const answer = await bulk(threepids)
      expect(answer.status).toBe(400)
      expect(answer.body.errcode).toMatch(/^M_INVALID_PARAM$/)
    },
  )
})
