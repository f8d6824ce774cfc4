import { tmpdir } from 'node:os'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import type { UserId } from '../../../src/core/ids.ts'
import { lookupHash } from '../../../src/core/lookup-hash.ts'
import { createLookup } from '../../../src/domain/identity/lookup.ts'
import { createLookupMemory, type LookupMemory } from '../../../src/domain/identity/lookup-memory.ts'
import { createPepperRotation, type PepperRotation } from '../../../src/domain/identity/pepper-rotation.ts'
import type { Database, Tx } from '../../../src/store/db/db.ts'
import { deleteBinding, lockAddress, upsertBinding } from '../../../src/store/identity/bindings.ts'
import { forgetLookupChanges } from '../../../src/store/identity/lookup-changes.ts'
import { findPepper } from '../../../src/store/identity/peppers.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { waitUntil } from '../../support/wait.ts'

const BINDINGS = 5_000
const ALICE = '@alice:hs.test' as UserId
const BOB = '@bob:hs.test' as UserId

let database: TestDatabase
let rotation: PepperRotation

beforeAll(async () => {
  database = await createTestDatabase()
  await database.db.query(
    `INSERT INTO identity_binding (medium, address, user_id, bound_at)
     SELECT 'email', 'user' || n || '@example.com', '@user' || n || ':hs.test', 0 FROM generate_series(1, $1::int) n`,
    [BINDINGS],
  )
  let n = 0
  const random = { bytes: (count: number) => Buffer.alloc(count, `pepper${n++}`) }
  rotation = createPepperRotation({ db: database.db, clock: Date, random })
  await rotation.rotate()
})

afterAll(() => database.drop())

type Limits = Partial<Pick<Parameters<typeof createLookupMemory>[0], 'maxBindings' | 'idleMs' | 'log' | 'db'>>

function openMemory(limits: Limits = {}): LookupMemory {
  const { db } = database
  const log = pino({ level: 'silent' })
  const memory = createLookupMemory({ checks: db.dedicated(), db, log, ...limits })
  onTestFinished(() => memory.close())
  return memory
}

const pepper = async () => (await findPepper(database.db)).pepper
const emailOf = (n: number) => `user${n}@example.com`

/** Users of addresses as memory tells, under the pepper of now; undefined while it does not. */
async function usersOf(memory: LookupMemory, ...emails: string[]): Promise<(string | undefined)[] | undefined> {
  const asked = await pepper()
  const entries = emails.map((email) => lookupHash(email, 'email', asked))
  const found = await memory.find(asked, entries)
  expect([undefined, asked]).toContain(found?.pepper)
  return found && entries.map((entry) => found.users.get(entry))
}

async function filled(memory: LookupMemory): Promise<LookupMemory> {
  await waitUntil('all bindings in memory', async () => (await usersOf(memory)) !== undefined)
  return memory
}

const bind = (address: string, user_id: UserId) =>
  database.db.tx(async (tx) => {
    await lockAddress(tx, { medium: 'email', address })
    await upsertBinding(tx, { medium: 'email', address, user_id, bound_at: 1 })
  })
const unbind = (address: string, user: UserId) =>
  database.db.tx((tx) => deleteBinding(tx, { medium: 'email', address }, user))

describe('lookups from memory', () => {
  it('find what is bound, without the hashes in the database', async () => {
    const memory = await filled(openMemory())
    await database.db.query('ALTER TABLE identity_lookup_hash RENAME TO away')
    const found = await usersOf(memory, emailOf(1), 'nobody@example.com', emailOf(BINDINGS))
    await database.db.query('ALTER TABLE away RENAME TO identity_lookup_hash')
    expect(found).toEqual(['@user1:hs.test', undefined, `@user${BINDINGS}:hs.test`])
    const whole = lookupHash(emailOf(1), 'email', await pepper())
    for (const entry of [whole.toLowerCase(), `${whole.slice(0, -1)}A`, `${whole.slice(0, 41)}AA`, '', `${whole}=`]) {
      if (entry !== whole) expect((await memory.find(await pepper(), [entry]))?.users).toEqual(new Map())
    }
  })

  it('follow every bind, rebind and unbind from its commit on, whoever made it', async () => {
    const memories = [await filled(openMemory()), await filled(openMemory())]
    const expectAll = async (address: string, user: UserId | undefined) => {
      for (const memory of memories) expect(await usersOf(memory, address)).toEqual([user])
    }
    await bind('a@example.org', ALICE)
    await expectAll('a@example.org', ALICE)
    await bind('a@example.org', BOB)
    await expectAll('a@example.org', BOB)
    expect(await unbind('a@example.org', ALICE)).toBe(false)
    await expectAll('a@example.org', BOB)
    expect(await unbind('a@example.org', BOB)).toBe(true)
    await expectAll('a@example.org', undefined)
    await bind('a@example.org', ALICE)
    await expectAll('a@example.org', ALICE)
    await unbind('a@example.org', ALICE)
  })

  it('follow what is written while they are being loaded, and thousands of changes at once', async () => {
    const memory = openMemory()
    expect(await usersOf(memory)).toBeUndefined()
    for (let n = 0; n < 51; n++) await (n % 3 === 2 ? unbind('b@example.org', ALICE) : bind('b@example.org', ALICE))
    await filled(memory)
    expect(await usersOf(memory, 'b@example.org')).toEqual([undefined])
    await database.db.query(
      `DO $$ BEGIN FOR n IN 1..2500 LOOP
         UPDATE identity_lookup_version SET version = version + 1;
         INSERT INTO identity_lookup_change
           SELECT version, pepper_nid, sha256(convert_to('c@example.org email ' || pepper, 'UTF8')), '@c' || n || ':hs.test'
           FROM identity_lookup_version, identity_pepper WHERE standing = 'current';
       END LOOP; END $$`,
    )
    expect(await usersOf(memory, 'c@example.org')).toEqual(['@c2500:hs.test'])
  })

  it('a change of which nobody heard whether it was committed counts from the commit on', async () => {
    const memory = await filled(openMemory())
    const address = 'doubt@example.org'
    const client = new pg.Client(database.connection)
    client.on('error', () => {})
    await client.connect()
    const tx = { query: async (text: string, values?: unknown[]) => (await client.query(text, values)).rows }
    await client.query('BEGIN')
    await upsertBinding(tx as never, { medium: 'email', address, user_id: ALICE, bound_at: 1 })
    expect(await usersOf(memory, address)).toEqual([undefined])
    // The other has to wait for this commit: versions come in the order of commits.
    const later = bind('later@example.org', BOB)
    client.query('COMMIT').catch(() => {})
    client.end().catch(() => {})
    await later
    expect(await usersOf(memory, address, 'later@example.org')).toEqual([ALICE, BOB])
    await unbind(address, ALICE)
    await unbind('later@example.org', BOB)
  })

  it('go on through a rotation: the next pepper is in memory before it is in use', async () => {
    let loads = 0
    const db: Pick<Database, 'tx'> = {
      tx: (work) =>
        database.db.tx((tx) => {
          const query = async (text: string, values?: readonly unknown[]) => {
            const rows = await tx.query(text, values)
            if (rows[0]?.last === null) loads++
            return rows
          }
          return work({ query } as Tx)
        }),
    }
    const memory = await filled(openMemory({ db }))
    const before = await pepper()
    let parts = 0
    await rotation.rotate({ stop: () => parts++ >= 1 })
    await waitUntil('the next pepper in memory', async () => {
      await usersOf(memory)
      return loads === 2
    })
    await bind('during@example.org', ALICE)
    const ask = async (asked: string) => {
      const entries = ['during@example.org', emailOf(9)].map((email) => lookupHash(email, 'email', asked))
      const found = await memory.find(asked, entries)
      return found?.pepper === asked ? entries.map((entry) => found.users.get(entry)) : found?.pepper
    }
    let isOver = false
    const rotated = rotation.rotate().then(() => (isOver = true))
    let asked = before
    while (!isOver) {
      const found = await ask(asked)
      // Either an answer, or once the new pepper, from which moment on the old one has none.
      if (typeof found === 'string') asked = found
      else expect(found).toEqual([ALICE, '@user9:hs.test'])
    }
    await rotated
    expect(await ask(before)).toBe(await pepper())
    expect(await ask(await pepper())).toEqual([ALICE, '@user9:hs.test'])
    expect(loads).toBe(2)
    await unbind('during@example.org', ALICE)
  })

  it('begin anew when changes are gone that they have not seen', async () => {
    const memory = await filled(openMemory())
    await bind('d@example.org', ALICE)
    await bind('e@example.org', ALICE)
    while ((await database.db.tx((tx) => forgetLookupChanges(tx, 1, 1_000))) > 0);
    expect(await usersOf(memory, 'd@example.org')).toBeUndefined()
    await filled(memory)
    expect(await usersOf(memory, 'd@example.org', 'e@example.org')).toEqual([ALICE, ALICE])
    await unbind('d@example.org', ALICE)
    await unbind('e@example.org', ALICE)
  })

  it('begin anew when what was replaced takes more room than what is', async () => {
    const memory = await filled(openMemory())
    await database.db.query(
      `WITH counted AS (UPDATE identity_lookup_version SET version = version + 11000 RETURNING version)
       INSERT INTO identity_lookup_change
         SELECT version - 11000 + n, pepper_nid, sha256(convert_to('f@example.org email ' || pepper, 'UTF8')), '@f:hs.test'
         FROM generate_series(1, 11000) n, counted, identity_pepper WHERE standing = 'current'`,
    )
    expect(await usersOf(memory, emailOf(3))).toBeUndefined()
    await filled(memory)
    expect(await usersOf(memory, emailOf(3), 'f@example.org')).toEqual(['@user3:hs.test', undefined])
  })

  it('are waited for where the database would have more to do than it can', async () => {
    const { db } = database
    const sources: string[] = []
    const { config } = loadConfig({ values: {}, directory: tmpdir() })
    const lookup = createLookup({
      ...{ config, db, log: pino({ level: 'silent' }) },
      quota: { spend: async () => {} },
      keys: { sign: (object) => ({ ...object, signatures: {} }) },
      metrics: { lookup: (source) => void sources.push(source) },
    })
    onTestFinished(() => lookup.close())
    const asked = await pepper()
    const addresses = Array.from({ length: 1_000 }, (_, n) => lookupHash(emailOf(n + 1), 'email', asked))
    const calls = Array.from({ length: 40 }, () => lookup.users({ algorithm: 'sha256', pepper: asked, addresses }, 'x'))
    for (const users of await Promise.all(calls)) {
      expect([users.size, users.get(addresses[7]!)]).toEqual([1_000, '@user8:hs.test'])
    }
    expect(sources.filter((source) => source === 'database')).toHaveLength(5)
    expect(sources).toHaveLength(40)
  })

  it('are not made when there are more bindings than may be remembered', async () => {
    const lines: string[] = []
    const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
    const memory = openMemory({ maxBindings: BINDINGS - 1_000, log })
    await waitUntil('the refusal', async () => {
      expect(await usersOf(memory)).toBeUndefined()
      return lines.length > 0
    })
    expect(lines.join()).toContain('more bindings than are remembered')
    for (let n = 0; n < 3; n++) expect(await usersOf(memory, emailOf(1))).toBeUndefined()
    expect(lines).toHaveLength(1)
  })

  it('are forgotten when nobody asks', async () => {
    const memory = await filled(openMemory({ idleMs: 300 }))
    await waitUntil('nothing remembered', async () => (await usersOf(memory)) === undefined, { everyMs: 400 })
  })
})
