import { afterAll, beforeAll, expect, it } from 'vitest'
import { lookupHash } from '../../../src/core/lookup-hash.ts'
import { createMetrics } from '../../../src/domain/metrics.ts'
import { waitUntil } from '../../support/wait.ts'
import { P1 } from '../identity-api.ts'
import { type People, startPeople } from '../people.ts'

const ALICE = '@alice:hs.test'

let people: People
let isHomeserverAway = false
let token: string

beforeAll(async () => {
  const call = async () => ({ status: isHomeserverAway ? 500 : 200, body: {} })
  people = await startPeople({ invites: { delivery_days: 1 } }, { homeservers: { call } })
  token = await people.tokenOf(ALICE)
})

afterAll(() => people.close())

/** The identity service's numbers, by their name after `hearth_identity_`. */
async function numbers(): Promise<Record<string, number>> {
  const text = await people.server.metrics.text()
  return Object.fromEntries(
    [...text.matchAll(/^hearth_identity_(\S+) (\S+)$/gm)].map(([, name, value]) => [name as string, Number(value)]),
  )
}

/** What work adds to the numbers. */
async function added(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await numbers()
  await work()
  const difference = Object.entries(await numbers()).map(
    ([name, value]) => [name, value - (before[name] ?? 0)] as const,
  )
  return Object.fromEntries(difference.filter(([, value]) => value !== 0))
}

const lookup = async (algorithm: 'sha256' | 'none', ...emails: string[]) => {
  const { lookup_pepper: pepper } = (await people.identity.ask('GET', '/hash_details', { token })).body
  const addresses = emails.map((email) =>
    algorithm === 'none' ? `${email} email` : lookupHash(email, 'email', pepper),
  )
  return people.identity.ask('POST', '/lookup', { token, body: { algorithm, pepper, addresses } })
}
const invite = (address: string) =>
  people.identity.ask('POST', `${P1}/store-invite`, {
    body: { medium: 'email', address, room_id: '!r:hs.test', sender: '@sender:hs.test' },
  })
const deliver = () => people.server.deliveries.deliverDue()

it('sessions, mails, binds and unbinds', async () => {
  expect(await added(() => people.bind('alice@example.com', ALICE))).toEqual({
    'sessions_total{medium="email",step="requested"}': 1,
    'sessions_total{medium="email",step="validated"}': 1,
    'messages_total{medium="email",outcome="sent"}': 1,
    'bindings_total{act="bind"}': 1,
  })
  people.refuseMails(new Error('no'))
  expect(await added(() => people.requested('other@example.com', ALICE).catch(() => {}))).toEqual({
    'sessions_total{medium="email",step="requested"}': 1,
    'messages_total{medium="email",outcome="failed"}': 1,
  })
  people.refuseMails(null)
  const proof = await people.validated('alice@example.com', ALICE)
  const body = { ...proof, mxid: ALICE, threepid: { medium: 'email', address: 'alice@example.com' } }
  const unbind = () => people.identity.ask('POST', '/3pid/unbind', { token, body })
  expect(await added(unbind)).toEqual({ 'bindings_total{act="unbind"}': 1 })
  expect(await added(unbind)).toEqual({})
})

it('lookups: by whom they were answered, of how many addresses, and how many were bound', async () => {
  await people.bind('alice@example.com', ALICE)
  const found = { addresses_looked_up_total: 2, addresses_found_total: 1 }
  expect(await added(() => lookup('sha256', 'alice@example.com', 'x@example.com'))).toMatchObject({
    'lookups_total{source="database"}': 1,
    ...found,
  })
  await waitUntil('lookups from memory', async () => {
    await lookup('sha256')
    return (await numbers()).bindings_in_memory === 1
  })
  expect(await added(() => lookup('sha256', 'alice@example.com', 'x@example.com'))).toEqual({
    'lookups_total{source="memory"}': 1,
    ...found,
  })
  expect(await added(() => lookup('none', 'alice@example.com', 'x@example.com'))).toEqual({
    'lookups_total{source="plain"}': 1,
    ...found,
  })
})

it('invitations stored and delivered, and deliveries that failed or were given up', async () => {
  await deliver()
  expect(await added(() => invite('new@example.com'))).toEqual({
    'invitations_total{step="stored"}': 1,
    'messages_total{medium="email",outcome="sent"}': 1,
  })
  await invite('new@example.com')
  await people.bind('new@example.com', ALICE)
  isHomeserverAway = true
  expect(await added(deliver)).toEqual({ 'invitations_total{step="failed"}': 1 })
  isHomeserverAway = false
  people.server.advance(60_000)
  expect(await added(deliver)).toEqual({ 'invitations_total{step="delivered"}': 2 })
  await invite('late@example.com')
  await people.bind('late@example.com', ALICE)
  isHomeserverAway = true
  people.server.advance(86_400_000)
  expect(await added(deliver)).toEqual({ 'invitations_total{step="given_up"}': 1 })
})

it('the age of the pepper, and how far a rotation has come, whoever makes it', async () => {
  const { db } = people.server
  const before = await numbers()
  expect(before.pepper_rotation_ratio).toBe(1)
  expect(before.pepper_timestamp_seconds).toBeLessThanOrEqual(Date.now() / 1_000)
  await db.query(
    `INSERT INTO identity_pepper (pepper, standing, since, hashed_to)
     SELECT 'next', 'next', 0, max(binding_nid) / 2.0 FROM identity_binding`,
  )
  const { pepper_rotation_ratio: ratio } = await numbers()
  expect(ratio).toBeGreaterThan(0)
  expect(ratio).toBeLessThan(1)
  await people.server.services.identity.pepperRotation.rotate()
  const after = await numbers()
  expect(after.pepper_rotation_ratio).toBe(1)
  expect(after.pepper_timestamp_seconds).toBeGreaterThan(before.pepper_timestamp_seconds as number)
})

it('a database that does not answer keeps nobody from the other numbers', async () => {
  const metrics = createMetrics({ version: '', node: '' })
  metrics.identity.watch({ remembered: () => 7, rotation: () => new Promise(() => {}) })
  metrics.identity.binding('bind')
  const text = await metrics.text()
  expect(text).toContain('hearth_identity_bindings_total{act="bind"} 1')
  expect(text).toContain('hearth_identity_bindings_in_memory 7')
  expect(text).toContain('hearth_identity_pepper_rotation_ratio Nan')
})
