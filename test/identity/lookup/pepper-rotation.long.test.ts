import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import { lookupHash } from '../../../src/core/lookup-hash.ts'
import { createPepperRotation, type PepperRotation } from '../../../src/domain/identity/pepper-rotation.ts'
import { deleteBinding, lockAddress, upsertBinding } from '../../../src/store/identity/bindings.ts'
import { startPepperRotator } from '../../../src/workers/pepper-rotator.ts'
import type { Json } from '../../support/api.ts'
import { createTestDatabase } from '../../support/database.ts'
import { runHearth } from '../../support/run-hearth.ts'
import { waitUntil } from '../../support/wait.ts'
import { type People, startPeople } from '../people.ts'

const BINDINGS = 12_000
const HOUR = 3_600_000
const ALICE = '@alice:hs.test' as UserId

let people: People
let token: string
let rotation: PepperRotation

beforeAll(async () => {
  people = await startPeople({ lookup: { addresses_per_day: 0 } })
  token = await people.tokenOf(ALICE)
  rotation = people.server.services.identity.pepperRotation
  // As many as take three parts of a rotation, in one go; the first rotation hashes them.
  await people.server.db.query(
    `INSERT INTO identity_binding (medium, address, user_id, bound_at)
     SELECT 'email', 'user' || n || '@example.com', '@user' || n || ':hs.test', 0 FROM generate_series(1, $1::int) n`,
    [BINDINGS],
  )
  expect(await rotation.rotate()).toBe(BINDINGS)
})

afterAll(() => people.close())

const details = async () => (await people.identity.ask('GET', '/hash_details', { token })).body
const lookup = (pepper: string, emails: readonly string[]) =>
  people.identity.ask('POST', '/lookup', {
    token,
    body: { algorithm: 'sha256', pepper, addresses: emails.map((email) => lookupHash(email, 'email', pepper)) },
  })
const emailOf = (n: number) => `user${n}@example.com`
const rowsOf = async (text: string): Promise<number> => Number((await people.server.db.query<Json>(text))[0].n)
const hashes = () => rowsOf('SELECT count(*) AS n FROM identity_lookup_hash')
const bindings = () => rowsOf('SELECT count(*) AS n FROM identity_binding')
const peppers = () => rowsOf('SELECT count(*) AS n FROM identity_pepper')

/** Every binding has its hash under the current pepper, and there is nothing else. */
async function expectWhole(): Promise<void> {
  expect([await hashes(), await peppers()]).toEqual([await bindings(), 1])
  const missing = await rowsOf(
    `SELECT count(*) AS n FROM identity_binding b, identity_pepper p WHERE NOT EXISTS (
       SELECT FROM identity_lookup_hash h WHERE h.user_id = b.user_id AND h.pepper_nid = p.pepper_nid AND
         h.hash = sha256(convert_to(b.address || ' ' || b.medium || ' ' || p.pepper, 'UTF8')))`,
  )
  expect(missing).toBe(0)
}

/** Looks the same addresses up again and again, as a client does; gives how often, and throws at the first wrong answer. */
async function askUntil(isOver: () => boolean): Promise<{ right: number; refused: number }> {
  const seen = { right: 0, refused: 0 }
  let pepper = (await details()).lookup_pepper
  while (!isOver() || seen.right === 0) {
    const numbers = Array.from({ length: 50 }, () => 1 + Math.floor(Math.random() * BINDINGS))
    const { status, body } = await lookup(pepper, numbers.map(emailOf))
    if (status === 200) {
      seen.right++
      expect(body.mappings).toEqual(
        Object.fromEntries(numbers.map((n) => [lookupHash(emailOf(n), 'email', pepper), `@user${n}:hs.test`])),
      )
    } else {
      seen.refused++
      expect(body).toMatchObject({ errcode: 'M_INVALID_PEPPER', lookup_pepper: expect.any(String) })
      expect(body.lookup_pepper).not.toBe(pepper)
      pepper = body.lookup_pepper
    }
  }
  return seen
}

describe('rotation of the pepper', () => {
  beforeEach(async () => {
    expect(await peppers()).toBe(1)
  })

  it('gives a new pepper, with which everybody is found, and none of the old', async () => {
    const before = (await details()).lookup_pepper
    expect(await rotation.rotate()).toBe(BINDINGS)
    const after = (await details()).lookup_pepper
    expect(after).not.toBe(before)
    expect(after).toMatch(/^[a-zA-Z0-9]{32}$/)
    expect(await lookup(before, [emailOf(1)])).toMatchObject({
      status: 400,
      body: { errcode: 'M_INVALID_PEPPER', lookup_pepper: after },
    })
    expect(Object.values((await lookup(after, [emailOf(1), emailOf(BINDINGS)])).body.mappings)).toHaveLength(2)
    await expectWhole()
  })

  it('no answer is wrong while lookups, binds and unbinds go on', async () => {
    let isOver = false
    const { db } = people.server
    const bindAndUnbind = async (name: string): Promise<void> => {
      const threepid = { medium: 'email', address: `${name}@example.org` }
      for (let round = 0; !isOver; round++) {
        await db.tx(async (tx) => {
          await lockAddress(tx, threepid)
          await upsertBinding(tx, { ...threepid, user_id: ALICE, bound_at: round })
        })
        const pepper = (await details()).lookup_pepper
        const { status, body } = await lookup(pepper, [threepid.address])
        if (status === 200) expect(Object.values(body.mappings)).toEqual([ALICE])
        if (round % 2 === 0) {
          await db.tx(async (tx) => {
            await lockAddress(tx, threepid)
            expect(await deleteBinding(tx, threepid, ALICE)).toBe(true)
          })
          const gone = await lookup((await details()).lookup_pepper, [threepid.address])
          if (gone.status === 200) expect(gone.body.mappings).toEqual({})
        }
      }
    }
    const asking = ['a', 'b'].map(() => askUntil(() => isOver))
    const changing = ['x', 'y'].map(bindAndUnbind)
    try {
      await rotation.rotate()
      await rotation.rotate()
    } finally {
      isOver = true
    }
    const seen = await Promise.all(asking)
    await Promise.all(changing)
    expect(seen.reduce((sum, { right }) => sum + right, 0)).toBeGreaterThan(2)
    expect(seen.some(({ refused }) => refused > 0)).toBe(true)
    await db.query(`DELETE FROM identity_binding WHERE address LIKE '%@example.org'`)
    await rotation.rotate()
    await expectWhole()
  })

  it('broken off, it leaves the old pepper in use, and goes on where it was', async () => {
    const before = (await details()).lookup_pepper
    let parts = 0
    expect(await rotation.rotate({ stop: () => parts++ >= 1 })).toBeUndefined()
    expect((await details()).lookup_pepper).toBe(before)
    expect(await hashes()).toBe(BINDINGS + 2_000)
    // Somebody who comes meanwhile is found under both.
    await people.bind('late@example.com', ALICE)
    expect(Object.values((await lookup(before, ['late@example.com', emailOf(7)])).body.mappings)).toHaveLength(2)
    const { db, services } = people.server
    const another = createPepperRotation({ db, clock: services.clock, random: { bytes: randomBytes } })
    expect(await another.rotate({ minAgeMs: Number.POSITIVE_INFINITY })).toBe(BINDINGS - 2_000 + 1)
    const after = (await details()).lookup_pepper
    expect(Object.values((await lookup(after, ['late@example.com', emailOf(7)])).body.mappings)).toHaveLength(2)
    await expectWhole()
  })

  it('broken off after the switch, the old hashes go with the next call', async () => {
    const before = (await details()).lookup_pepper
    // All parts, and the one that finds nothing more to hash.
    const hashing = Math.ceil((await bindings()) / 2_000) + 1
    let parts = 0
    await rotation.rotate({ stop: () => parts++ >= hashing })
    expect((await details()).lookup_pepper).not.toBe(before)
    expect(await peppers()).toBe(2)
    expect(await rotation.rotate({ minAgeMs: Number.POSITIVE_INFINITY })).toBeUndefined()
    await expectWhole()
  })

  it('is made once by processes that find it due at once', async () => {
    people.server.advance(25 * HOUR)
    const seen = new Set<string>()
    let isOver = false
    const watching = (async () => {
      while (!isOver) seen.add((await details()).lookup_pepper)
    })()
    try {
      await Promise.all([1, 2, 3].map(() => rotation.rotate({ minAgeMs: 24 * HOUR })))
    } finally {
      isOver = true
    }
    await watching
    seen.add((await details()).lookup_pepper)
    expect(seen.size).toBeLessThanOrEqual(2)
    await expectWhole()
    expect(await rotation.rotate({ minAgeMs: 24 * HOUR })).toBeUndefined()
  })

  it('the worker rotates at the age of the configuration', async () => {
    const before = (await details()).lookup_pepper
    const { config } = people.server.services
    const log = pino({ level: 'silent' })
    const early = startPepperRotator({ config, rotation, log })
    await early.close()
    expect((await details()).lookup_pepper).toBe(before)
    people.server.advance(config.identity.lookup.pepper_hours * HOUR)
    const rotator = startPepperRotator({ config, rotation, log })
    await waitUntil('a new pepper', async () => (await details()).lookup_pepper !== before)
    await waitUntil('the end of the old one', async () => (await peppers()) === 1)
    await rotator.close()
    await expectWhole()
  })
})

it('hearth identity rotate-pepper', async () => {
  const database = await createTestDatabase()
  const pepper = async () =>
    (await database.db.query<{ pepper: string }>(`SELECT pepper FROM identity_pepper WHERE standing = 'current'`))[0]
  const before = await pepper()
  const env = { HEARTH__DATA_DIR: '.', HEARTH__DATABASE__URL: database.url }
  const directory = await mkdtemp(join(tmpdir(), 'hearth-pepper-'))
  const outcome = await runHearth(['identity', 'rotate-pepper'], { directory, env })
  await rm(directory, { recursive: true })
  expect(outcome).toMatchObject({ code: 0, stdout: expect.stringContaining('0 bindings') })
  expect(await pepper()).not.toEqual(before)
  await database.drop()
})
