import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ServerName } from '../../../src/core/ids.ts'
import { verifyJson } from '../../../src/core/signing/json-signature.ts'
import type { HomeserverAnswer } from '../../../src/domain/identity/homeserver-calls.ts'
import { startInviteDeliverer } from '../../../src/workers/invite-deliverer.ts'
import type { Json } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { P1 } from '../identity-api.ts'
import { type People, startPeople } from '../people.ts'

const SENDER = '@sender:hs.test'
const ONBIND = 'federation/v1/3pid/onbind'
const HOUR = 3_600_000

/** What homeservers were told, and what they say to it. */
const calls: { server: string; method: string; path: string; body: Json }[] = []
const own: Json[] = []
let reply: (method: string) => HomeserverAnswer | Error
let counter = 0
let people: People
let address: string
let userId: string

beforeAll(async () => {
  people = await startPeople(
    {
      invites: { delivery_days: 2, lifetime_days: 30 },
      sessions: { messages_per_hour: { mails_to_address: 0 } },
    },
    {
      homeservers: {
        async call(server, { method, path, body }) {
          calls.push({ server, method, path, body })
          const answer = reply(method)
          if (answer instanceof Error) throw answer
          return answer
        },
      },
      ownHomeserver: {
        serverName: 'localhost' as ServerName,
        async bound(body) {
          own.push(body)
        },
      },
    },
  )
})

afterAll(() => people.close())

beforeEach(() => {
  counter++
  address = `invitee${counter}@example.org`
  userId = `@invitee${counter}:elsewhere.test`
  calls.length = 0
  own.length = 0
  reply = () => ({ status: 200, body: {} })
})

const invite = async (room: string): Promise<string> => {
  const body = { medium: 'email', address, room_id: room, sender: SENDER }
  return (await people.identity.ask('POST', `${P1}/store-invite`, { body })).body.token
}
const deliver = () => people.server.deliveries.deliverDue()

describe('seed 1, "Outgoing call to a homeserver"', () => {
  it('a bound address with invitations: 3pid/onbind to the homeserver of the user, signed', async () => {
    const tokens = [await invite('!a:hs.test'), await invite('!b:hs.test')]
    const { body: association } = await people.bind(address.toUpperCase(), userId)
    expect(await deliver()).toBe(1)
    expect(calls).toHaveLength(1)
    const [{ server, method, path, body }] = calls as [(typeof calls)[number]]
    expect([server, method, path]).toEqual(['elsewhere.test', 'PUT', ONBIND])
    const { invites, ...rest } = body
    expect(rest).toEqual(association)
    expect(invites).toEqual(
      ['!a:hs.test', '!b:hs.test'].map((room_id, index) => ({
        ...{ medium: 'email', address, room_id, sender: SENDER, mxid: userId, token: tokens[index] },
        signed: { mxid: userId, token: tokens[index], signatures: { localhost: { 'ed25519:0': expect.any(String) } } },
      })),
    )
    const { public_key } = (await people.identity.ask('GET', '/pubkey/ed25519:0')).body
    for (const { signed } of invites) expect(verifyJson(signed, 'localhost', 'ed25519:0', public_key)).toBe(true)
  })

  it('A1: many invitations come in parts, of which none is too long for who reads what nobody signed', async () => {
    for (let room = 0; room < 60; room++) await invite(`!${room}:hs.test`)
    await people.bind(address, userId)
    expect(await deliver()).toBe(1)
    const bodies = calls.map(({ body }) => body)
    expect(bodies.map(({ invites }) => invites.length)).toEqual([50, 10])
    expect(Math.max(...bodies.map((body) => JSON.stringify(body).length))).toBeLessThan(64 * 1024)
  })

  it('without invitations there is no call', async () => {
    await people.bind(address, userId)
    expect(await deliver()).toBe(0)
    expect(calls).toEqual([])
  })

  it.each([
    [404, { errcode: 'M_UNRECOGNIZED' }],
    [405, undefined],
    [400, { errcode: 'M_UNRECOGNIZED' }],
  ])('facts 31: a homeserver that does not know PUT (%i) is asked by POST', async (status, body) => {
    reply = (method) => (method === 'PUT' ? { status, body } : { status: 200, body: {} })
    await invite('!a:hs.test')
    await people.bind(address, userId)
    await deliver()
    expect(calls.map(({ method }) => method)).toEqual(['PUT', 'POST'])
    people.server.advance(HOUR)
    expect(await deliver()).toBe(0)
  })

  it('the homeserver of this process is told without HTTP', async () => {
    await invite('!a:hs.test')
    const body = { ...(await people.validated(address, userId)), mxid: `@own${counter}:localhost` }
    await people.identity.ask('POST', `${P1}/3pid/bind`, { body })
    await deliver()
    expect(calls).toEqual([])
    expect(own).toMatchObject([{ mxid: `@own${counter}:localhost`, invites: [{ room_id: '!a:hs.test' }] }])
  })
})

describe('facts S20 and S21: the queue', () => {
  it('what was taken is never delivered again: not to the same user, not to the next', async () => {
    await invite('!a:hs.test')
    await people.bind(address, userId)
    await deliver()
    await people.bind(address, userId)
    await people.bind(address, '@next:elsewhere.test')
    people.server.advance(HOUR)
    expect(await deliver()).toBe(0)
    expect(calls).toHaveLength(1)
  })

  it('what was not taken is tried again, later and later, whatever went wrong', async () => {
    const failures = [
      new Error('away'),
      { status: 500, body: undefined },
      { status: 403, body: { errcode: 'M_FORBIDDEN' } },
    ]
    reply = () => failures[calls.length - 1] ?? { status: 200, body: {} }
    await invite('!a:hs.test')
    await people.bind(address, userId)
    for (const pauseMs of [5_000, 10_000, 20_000]) {
      expect(await deliver()).toBe(1)
      people.server.advance(pauseMs - 1_000)
      expect(await deliver()).toBe(0)
      people.server.advance(1_000)
    }
    expect(await deliver()).toBe(1)
    expect(calls).toHaveLength(4)
    people.server.advance(HOUR)
    expect(await deliver()).toBe(0)
  })

  it('no bind waits for it', async () => {
    reply = () => new Error('away')
    await invite('!a:hs.test')
    expect(await people.bind(address, userId)).toMatchObject({ status: 200 })
    expect(calls).toEqual([])
    await deliver()
    people.server.advance(100 * HOUR)
    await deliver()
  })

  it('is given up after the days of the configuration; a new binding begins anew', async () => {
    reply = () => new Error('away')
    await invite('!a:hs.test')
    await people.bind(address, userId)
    let tries = 0
    for (let hours = 0; hours < 72; hours++) {
      tries += await deliver()
      people.server.advance(HOUR)
    }
    expect(tries).toBeGreaterThan(40)
    expect(tries).toBeLessThan(52)
    reply = () => ({ status: 200, body: {} })
    expect(await deliver()).toBe(0)
    calls.length = 0
    await people.bind(address, userId)
    expect(await deliver()).toBe(1)
    expect(calls).toMatchObject([{ body: { invites: [{ room_id: '!a:hs.test' }] } }])
  })

  it('follows the address when it is bound to another before it was taken', async () => {
    reply = () => new Error('away')
    await invite('!a:hs.test')
    await people.bind(address, userId)
    await deliver()
    reply = () => ({ status: 200, body: {} })
    await people.bind(address, '@next:other.test')
    people.server.advance(HOUR)
    await deliver()
    expect(calls.slice(1)).toMatchObject([{ server: 'other.test', body: { mxid: '@next:other.test' } }])
  })

  it('is withdrawn when the address is unbound before it was taken', async () => {
    await invite('!a:hs.test')
    await people.bind(address, userId)
    const proof = await people.validated(address, userId)
    const body = { ...proof, mxid: userId, threepid: { medium: 'email', address } }
    await people.identity.ask('POST', `${P1}/3pid/unbind`, { body })
    expect(await deliver()).toBe(0)
    await people.bind(address, userId)
    expect(await deliver()).toBe(1)
  })

  it('an invitation that has ended is not delivered', async () => {
    await invite('!a:hs.test')
    people.server.advance(30 * 24 * HOUR)
    await people.bind(address, `@late${counter}:elsewhere.test`)
    expect(await deliver()).toBe(0)
  })

  it('processes that look at once send each invitation once', async () => {
    const addresses = Array.from({ length: 5 }, (_, index) => `many${index}.${address}`)
    for (const each of addresses) {
      address = each
      await invite('!a:hs.test')
      await people.bind(each, userId)
    }
    const tried = await Promise.all([deliver(), deliver(), deliver()])
    expect(tried.reduce((sum, count) => sum + count)).toBe(5)
    expect(calls).toHaveLength(5)
  })

  it('an address that is bound while it is being invited is either refused or delivered', async () => {
    const addresses = Array.from({ length: 6 }, (_, index) => `race${index}.${address}`)
    for (const each of addresses) {
      address = each
      const proof = await people.validated(each, userId)
      const token = await people.tokenOf(userId)
      const [stored] = await Promise.all([
        people.identity.ask('POST', `${P1}/store-invite`, {
          body: { medium: 'email', address: each, room_id: '!a:hs.test', sender: SENDER },
        }),
        people.identity.ask('POST', '/3pid/bind', { token, body: { ...proof, mxid: userId } }),
      ])
      calls.length = 0
      await deliver()
      expect(calls).toHaveLength(stored.status === 200 ? 1 : 0)
    }
  })

  it('the worker sends at once what becomes due, and what an earlier process left', async () => {
    await invite('!left:hs.test')
    await people.bind(address, userId)
    const { deliveries } = people.server
    const worker = startInviteDeliverer(deliveries, pino({ level: 'silent' }))
    await waitUntil('what was left', () => calls.length === 1)
    address = `now.${address}`
    await invite('!now:hs.test')
    await people.bind(address, userId)
    await waitUntil('what became due', () => calls.length === 2)
    await worker.close()
  })

  it('logs no address', () => {
    expect(people.server.logged()).not.toContain('@example.org')
  })
})
