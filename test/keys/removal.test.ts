import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { CLAIMED_KEYS_KEPT_MS } from '../../src/domain/limits.ts'
import { startJanitor } from '../../src/workers/janitor.ts'
import { type House, openHouse } from '../rooms/people.ts'
import { login, PASSWORD } from '../support/api.ts'
import { crossSigner } from './key-maker.ts'
import { idsOfPeople, keyedPerson, listsOf } from './people-with-keys.ts'

let house: House

beforeAll(async () => {
  house = await openHouse()
})
afterAll(() => house.close())

const TABLES = ['device', 'device_key', 'one_time_key', 'fallback_key', 'cross_signing_key']

/** How many rows of a table are a user's. */
async function rowsOf(userId: string): Promise<Record<string, number>> {
  const { db } = house.server.database
  const counts: Record<string, number> = {}
  const user = '(SELECT user_nid FROM matrix_user WHERE user_id = $1)'
  for (const table of TABLES) {
    const [row] = await db.query<{ count: number }>(`SELECT count(*) AS count FROM ${table} WHERE user_nid = ${user}`, [
      userId,
    ])
    counts[table] = row!.count
  }
  const [signatures] = await db.query<{ count: number }>(
    `SELECT count(*) AS count FROM key_signature WHERE ${user} IN (target_nid, signer_nid)`,
    [userId],
  )
  return { ...counts, key_signature: signatures!.count }
}

it('deactivation takes all keys, what they signed and what signed them, and tells who shared a room', async () => {
  const [alice, bob] = [await keyedPerson(house, 'alice'), await keyedPerson(house, 'bob')]
  const [ofAlice, ofBob] = [crossSigner(alice.userId), crossSigner(bob.userId)]
  await alice.call('POST', '/keys/device_signing/upload', ofAlice.body())
  await bob.call('POST', '/keys/device_signing/upload', ofBob.body())
  const { maker } = bob
  const fallback_keys = maker.named('signed_curve25519:f')
  await bob.call('POST', '/keys/upload', { one_time_keys: maker.keys(3), fallback_keys })
  const sign = (
    signer: ReturnType<typeof crossSigner>,
    by: typeof alice,
    of: ReturnType<typeof crossSigner>,
    whom: typeof alice,
  ) =>
    by.call('POST', '/keys/signatures/upload', {
      [whom.userId]: {
        [of.keys.master.publicKey]: signJson(of.object('master'), by.userId, signer.keys.user_signing),
      },
    })
  await sign(ofAlice, alice, ofBob, bob)
  await sign(ofBob, bob, ofAlice, alice)
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  expect(Object.values(await rowsOf(bob.userId)).every((count) => count > 0)).toBe(true)
  const { next_batch: since } = await alice.sync()
  const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: bob.userId }, password: PASSWORD }
  await bob.call('POST', '/account/deactivate', { auth })
  expect(Object.values(await rowsOf(bob.userId))).toEqual([0, 0, 0, 0, 0, 0])
  // While he leaves, a sync may be too late for the one list and too early for the other. The next one has the other.
  const { changed, left } = listsOf(await alice.call('GET', `/sync?since=${since}&timeout=10000`))
  expect([...changed, ...left]).toEqual(idsOfPeople(bob))
  const answer = await alice.call('POST', '/keys/query', { device_keys: { [bob.userId]: [] } })
  expect([answer.device_keys, answer.master_keys]).toEqual([{ [bob.userId]: {} }, {}])
})

it('a login beyond the most that a user may have removes the oldest device, with its session, and tells', async () => {
  const [carol, dan] = [await keyedPerson(house, 'carol'), await keyedPerson(house, 'dan')]
  const room = await carol.createRoom({ preset: 'public_chat' })
  await dan.join(room)
  await house.server.database.db.query(
    `UPDATE device SET last_seen_at = NULL, created_at = 0 WHERE device_id = '${dan.deviceId}'`,
  )
  await house.server.database.db.query(
    `INSERT INTO device (user_nid, device_id, created_at)
     SELECT user_nid, 'old' || number, 1 FROM matrix_user CROSS JOIN generate_series(1, 499) AS number WHERE user_id = $1`,
    [dan.userId],
  )
  const { next_batch: since } = await carol.sync()
  const account = await login(house.api, dan.userId)
  expect((await dan.ask('GET', '/account/whoami')).body.errcode).toBe('M_UNKNOWN_TOKEN')
  const { devices } = await house.api.call('GET', '/devices', { token: account.token })
  expect(devices.length).toBe(500)
  expect(listsOf(await carol.sync(`&since=${since}`)).changed).toEqual(idsOfPeople(dan))
})

it('claimed keys are forgotten after a while, and others stay', async () => {
  const erin = await keyedPerson(house, 'erin')
  await erin.call('POST', '/keys/upload', { one_time_keys: erin.maker.keys(3) })
  await erin.call('POST', '/keys/claim', { one_time_keys: { [erin.userId]: { [erin.deviceId]: 'signed_curve25519' } } })
  const { db } = house.server.database
  const log = pino({ level: 'silent' })
  const at = async (ms: number) => {
    const janitor = startJanitor({ db, clock: { now: () => Date.now() + ms }, log })
    await janitor.tidy()
    await janitor.close()
    return (await rowsOf(erin.userId)).one_time_key
  }
  expect(await at(CLAIMED_KEYS_KEPT_MS - 60_000)).toBe(3)
  expect(await at(CLAIMED_KEYS_KEPT_MS + 60_000)).toBe(2)
})
