import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ProtocolError } from '../../../src/core/errors.ts'
import type { UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import {
  createInteractiveAuth,
  type InteractiveAuth,
  type UiaAttempt,
  type UiaOutcome,
} from '../../../src/domain/accounts/interactive-auth.ts'
import {
  MAX_UIA_ATTEMPTS,
  MAX_UIA_SESSIONS,
  MAX_UIA_SESSIONS_PER_USER,
  UIA_SESSION_MS,
} from '../../../src/domain/limits.ts'
import { forgetUiaSessions, insertUiaSession } from '../../../src/store/accounts/uia-sessions.ts'
import { mapConcurrently } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { inPortions } from '../../support/portions.ts'

let database: TestDatabase
let auth: InteractiveAuth
let ahead = 0
const clock = { now: () => Date.now() + ahead }
const proved: string[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  const word =
    (right: string) =>
    async (given: JsonObject, { session }: { readonly session: string }) => {
      proved.push(session)
      if (given.word === 'busy') throw new ProtocolError('M_LIMIT_EXCEEDED', 'slower')
      if (given.word !== right) throw new ProtocolError('M_UNAUTHORIZED', `not ${right}`)
      return { heard: right }
    }
  auth = createInteractiveAuth({
    db: database.db,
    clock,
    random: { bytes: randomBytes },
    stages: {
      one: { prove: word('eins'), params: () => ({ hint: 'German' }) },
      two: { prove: word('zwei') },
      other: { prove: word('anders') },
    },
  })
})

afterAll(() => database.drop())

const FLOWS = [['one', 'two'], ['other']]
const alice = { userId: '@alice:localhost' as UserId, userNid: 1, deviceId: 'A', tokenNid: 1, isGuest: false }
const call: UiaAttempt = {
  operation: 'POST C/delete_devices',
  requester: alice,
  address: '192.0.2.1',
  auth: undefined,
  body: { devices: ['A'] },
  flows: FLOWS,
}
const anonymous: UiaAttempt = { ...call, operation: 'POST C/register', requester: undefined, body: {} }

const advance = (given: JsonObject | undefined, changes: Partial<UiaAttempt> = {}) =>
  auth.advance({ ...call, ...changes, auth: given })
const challenged = (outcome: UiaOutcome) => {
  if ('proof' in outcome) throw new Error('it was granted')
  return outcome.challenge
}
const begin = async (changes: Partial<UiaAttempt> = {}) =>
  challenged(await advance(undefined, changes)).session as string

describe('interactive authentication (seed 2, Authentication 3)', () => {
  it('tells flows, params of each type that has some, and a session', async () => {
    expect(challenged(await advance(undefined))).toEqual({
      flows: [{ stages: ['one', 'two'] }, { stages: ['other'] }],
      params: { one: { hint: 'German' } },
      completed: [],
      session: expect.stringMatching(/^[\w-]{24}$/),
    })
  })

  it('never succeeds without auth', async () => {
    for (let i = 0; i < 3; i++) expect(await advance(undefined)).toHaveProperty('challenge')
    expect(await advance({})).toHaveProperty('challenge')
  })

  it("completes one flow's stages in order, told in `completed`", async () => {
    const session = await begin()
    const early = challenged(await advance({ type: 'two', word: 'zwei', session }))
    expect(early).toMatchObject({ errcode: 'M_UNAUTHORIZED', error: expect.stringContaining('one'), session })
    expect(early.completed).toEqual([])
    const first = challenged(await advance({ type: 'one', word: 'eins', session }))
    expect(first).toMatchObject({ completed: ['one'], session })
    expect(first.errcode).toBeUndefined()
    const aside = challenged(await advance({ type: 'other', word: 'anders', session }))
    expect(aside).toMatchObject({ errcode: 'M_UNAUTHORIZED', completed: ['one'] })
    const done = await advance({ type: 'two', word: 'zwei', session })
    expect(done).toEqual({ proof: { one: { heard: 'eins' }, two: { heard: 'zwei' } } })
  })

  it('lets a failed stage be tried again, with errcode and error in the 401 body', async () => {
    const session = await begin()
    const wrong = challenged(await advance({ type: 'other', word: 'x', session }))
    expect(wrong).toMatchObject({ errcode: 'M_UNAUTHORIZED', error: 'not anders', session, flows: expect.any(Array) })
    expect(await advance({ type: 'other', word: 'anders', session })).toHaveProperty('proof')
  })

  it('raises other failures as they are', async () => {
    const session = await begin()
    await expect(advance({ type: 'other', word: 'busy', session })).rejects.toMatchObject({ status: 429 })
  })

  it('does not run a completed stage again', async () => {
    const session = await begin()
    await advance({ type: 'one', word: 'eins', session })
    const before = proved.length
    const again = challenged(await advance({ type: 'one', word: 'wrong', session }))
    expect(again).toMatchObject({ completed: ['one'] })
    expect(again.errcode).toBeUndefined()
    expect(proved).toHaveLength(before)
  })

  it('is spent by the call that it authorised: a replay is refused', async () => {
    const session = await begin()
    const given = { type: 'other', word: 'anders', session }
    const answers = await mapConcurrently(Array.from({ length: 8 }), 8, () => advance(given))
    expect(answers.filter((answer) => 'proof' in answer)).toHaveLength(1)
    const late = challenged(await advance({ session }))
    expect(late).toMatchObject({ errcode: 'M_UNKNOWN' })
    expect(late.session).not.toBe(session)
  })

  it('takes a call that completes everything at once', async () => {
    expect(await advance({ type: 'other', word: 'anders' })).toEqual({ proof: { other: { heard: 'anders' } } })
  })

  it('begins a session for a first stage that names none', async () => {
    const first = challenged(await advance({ type: 'one', word: 'eins' }))
    expect(first).toMatchObject({ completed: ['one'] })
    expect(proved.at(-1)).toBe(first.session)
    expect(await advance({ type: 'two', word: 'zwei', session: first.session as string })).toHaveProperty('proof')
  })
})

describe('a session is bound', () => {
  const refused = { errcode: 'M_FORBIDDEN' }

  it('to user, method and path', async () => {
    const session = await begin()
    const given = { type: 'other', word: 'anders', session }
    const bob = { ...alice, userNid: 2 }
    const others = [{ requester: bob }, { requester: undefined }, { operation: 'DELETE C/devices/A' }]
    for (const change of others) await expect(advance(given, change)).rejects.toMatchObject(refused)
    expect(await advance(given)).toHaveProperty('proof')
  })

  it('to the body, from its first completed stage on', async () => {
    const session = await begin()
    await advance({ type: 'one', word: 'eins', session })
    const given = { type: 'two', word: 'zwei', session }
    await expect(advance(given, { body: { devices: ['B'] } })).rejects.toMatchObject(refused)
    expect(await advance(given)).toHaveProperty('proof')
  })

  it('to the body of its beginning, where a stage is completed out of band', async () => {
    const session = await begin()
    await auth.complete(session, 'other', {})
    await expect(advance({ session }, { body: { devices: ['B'] } })).rejects.toMatchObject(refused)
    const probe = await begin({ body: {} })
    await auth.complete(probe, 'other', {})
    await expect(advance({ session: probe })).rejects.toMatchObject(refused)
  })

  it('to the name that somebody without an account chooses after a look at the flows', async () => {
    const session = await begin(anonymous)
    await auth.complete(session, 'one', {})
    const wish = { ...anonymous, body: { username: 'a', password: 'secret password' } }
    expect(challenged(await advance({ session }, wish))).toMatchObject({ completed: ['one'] })
    const changed = { ...wish, body: { ...wish.body, username: 'b' } }
    await expect(advance({ type: 'two', word: 'zwei', session }, changed)).rejects.toMatchObject(refused)
    expect(await advance({ type: 'two', word: 'zwei', session }, wish)).toHaveProperty('proof')
  })
})

describe('a stage completed out of band', () => {
  it('is polled with the session alone', async () => {
    const session = await begin()
    expect(challenged(await advance({ session })).completed).toEqual([])
    await auth.complete(session, 'one', { by: 'page' })
    await auth.complete(session, 'one', { by: 'another click' })
    expect(challenged(await advance({ session }))).toMatchObject({ completed: ['one'] })
    await auth.complete(session, 'two', {})
    expect(await advance({ session })).toEqual({ proof: { one: { by: 'page' }, two: {} } })
  })

  it('is one that the session wants, at its turn', async () => {
    const session = await begin()
    await expect(auth.complete(session, 'two', {})).rejects.toMatchObject({ errcode: 'M_BAD_STATE' })
    await expect(auth.complete(session, 'm.login.dummy', {})).rejects.toMatchObject({ errcode: 'M_BAD_STATE' })
    for (const unknown of ['x'.repeat(24), '', "' OR 1=1"]) {
      await expect(auth.complete(unknown, 'one', {})).rejects.toMatchObject({ errcode: 'M_NOT_FOUND' })
    }
  })

  it('is seen by a look at the session', async () => {
    const session = await begin()
    await auth.complete(session, 'one', {})
    expect(await auth.look(session)).toEqual({
      userNid: 1,
      operation: 'POST C/delete_devices',
      stages: ['one', 'two', 'other'],
      completed: ['one'],
      next: ['two'],
    })
    expect(await auth.look('x'.repeat(24))).toBeUndefined()
    expect((await auth.look(await begin(anonymous)))?.userNid).toBeUndefined()
  })
})

describe('what is kept', () => {
  it('is neither the session id nor anything of the body', async () => {
    const session = await begin({ body: { new_password: 'canary-password' } })
    await advance({ type: 'one', word: 'eins', session }, { body: { new_password: 'canary-password' } })
    const rows = await database.db.query<{ row: string }>('SELECT t::text AS row FROM uia_session t')
    const text = rows.map(({ row }) => row).join('\n')
    expect(text).not.toContain(session)
    expect(text).not.toContain('canary-password')
  })

  it('is at most so many sessions of one user, the newest', async () => {
    const carol = { requester: { ...alice, userNid: 3 } }
    const first = await begin(carol)
    for (let i = 1; i < MAX_UIA_SESSIONS_PER_USER; i++) await begin(carol)
    expect(await auth.look(first)).toBeDefined()
    ahead += 1
    const last = await begin(carol)
    expect(await auth.look(last)).toBeDefined()
    const [row] = await database.db.query('SELECT count(*) AS count FROM uia_session WHERE user_nid = 3')
    expect(row).toEqual({ count: MAX_UIA_SESSIONS_PER_USER })
  })

  it('locks no session that stays when a new one begins', async () => {
    const dora = { ...alice, userId: '@dora:localhost' as UserId, userNid: 77 }
    await begin({ requester: dora })
    const next = { sessionId: 'next', operation: call.operation, userNid: dora.userNid, address: undefined }
    const { db } = database
    await db.tx(async (tx) => {
      const rest = { bodyHash: undefined, body: undefined, flows: '[]', createdAt: clock.now() }
      await insertUiaSession(tx, { ...next, ...rest }, MAX_UIA_SESSIONS_PER_USER)
      const free = await db.tx((other) =>
        other.query('SELECT 1 AS one FROM uia_session WHERE user_nid = $1 FOR UPDATE SKIP LOCKED', [dora.userNid]),
      )
      expect(free).toHaveLength(1)
    })
  })

  it('ends after too many attempts, also when they come at once', async () => {
    const session = await begin()
    const before = proved.length
    await mapConcurrently(Array.from({ length: MAX_UIA_ATTEMPTS + 10 }), 8, () =>
      advance({ type: 'one', word: 'guess', session }),
    )
    expect(proved.length - before).toBe(MAX_UIA_ATTEMPTS)
    expect(challenged(await advance({ type: 'one', word: 'eins', session }))).toMatchObject({ errcode: 'M_UNKNOWN' })
  })

  it('ends with time, and is tidied away', async () => {
    const session = await begin()
    await auth.complete(session, 'other', {})
    ahead += UIA_SESSION_MS + 1
    expect(await auth.look(session)).toBeUndefined()
    expect(challenged(await advance({ session }))).toMatchObject({ errcode: 'M_UNKNOWN' })
    const { db } = database
    expect(await db.tx((tx) => forgetUiaSessions(tx, clock.now() - UIA_SESSION_MS, 10))).toBe(10)
    await db.tx((tx) => forgetUiaSessions(tx, clock.now() - UIA_SESSION_MS, 10_000))
    const [row] = await db.query('SELECT count(*) AS count FROM uia_session')
    expect(row).toEqual({ count: 1 })
  })

  it('is at most so many sessions of all people, the newest, and each finished one', async () => {
    const { db } = database
    const early = await begin()
    const begun = clock.now()
    await db.tx((tx) =>
      tx.query(
        `INSERT INTO uia_session (session_id, operation, completed, created_at, outcome)
         VALUES ('finished', 'POST C/register', '{}', $1::bigint - 1, '{}')`,
        [begun],
      ),
    )
    await inPortions(MAX_UIA_SESSIONS, (from, to) =>
      db.tx((tx) =>
        tx.query(
          `INSERT INTO uia_session (session_id, operation, address, completed, created_at)
           SELECT 'of ' || n, 'POST C/register', 'of ' || n, '{}', $1::bigint + n FROM generate_series($2::int, $3::int) n`,
          [begun, from, to],
        ),
      ),
    )
    // All were begun a while ago.
    ahead += MAX_UIA_SESSIONS + 5_000
    const late = await begin()
    const [row] = await db.query(
      `SELECT count(*) FILTER (WHERE outcome IS NULL) AS unfinished, count(outcome) AS finished,
         count(*) FILTER (WHERE session_id = 'of ' || $1::int) AS newest FROM uia_session`,
      [MAX_UIA_SESSIONS],
    )
    expect(row).toEqual({ unfinished: MAX_UIA_SESSIONS * 0.9 + 1, finished: 1, newest: 1 })
    expect(await auth.look(early)).toBeUndefined()
    expect(await auth.look(late)).toBeDefined()
    expect(challenged(await advance({ session: early }))).toMatchObject({ errcode: 'M_UNKNOWN' })
  })
})
