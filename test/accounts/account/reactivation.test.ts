import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import { createDeactivation, type Deactivation, type EndingUser } from '../../../src/domain/accounts/deactivation.ts'
import { createPasswords } from '../../../src/domain/accounts/passwords.ts'
import { createUserDesk } from '../../../src/domain/admin/user-desk.ts'
import { openErasedUsers } from '../../../src/domain/rooms/read/erased-users.ts'
import { findAccount } from '../../../src/store/accounts/accounts.ts'
import type { Database } from '../../../src/store/db/db.ts'
import { createTestDatabase } from '../../support/database.ts'

const database = await createTestDatabase()
afterAll(() => database.drop())

const { db } = database
const nothing = async () => undefined

async function makeUser(userId: UserId): Promise<number> {
  const [row] = await db.tx((tx) =>
    tx.query<{ user_nid: number }>(
      `WITH made AS (INSERT INTO matrix_user (user_id) VALUES ($1) RETURNING user_nid)
       INSERT INTO account (user_nid, is_guest, is_admin, created_at) SELECT user_nid, false, false, 1 FROM made RETURNING user_nid`,
      [userId],
    ),
  )
  return row!.user_nid
}

/** @param committed called after a transaction was committed, before whoever began it hears of that */
async function openDeactivation(committed: () => Promise<void> = nothing) {
  const erasedUsers = await openErasedUsers({ db, events: { load: async () => new Map() } as never })
  const tx: Database['tx'] = async (work) => {
    begun += 1
    const result = await db.tx(work)
    await committed()
    return result
  }
  let begun = 0
  const deactivation = createDeactivation({
    db: { ...db, tx },
    clock: Date,
    devices: { removeAll: nothing },
    crossSigning: { removeAll: nothing },
    contacts: { removeAll: async () => 'success' },
    identityAccounts: { removeAll: nothing },
    erasedUsers,
    position: () => 7,
    rooms: { leave: nothing },
    log: pino({ level: 'silent' }),
  })
  return { deactivation, erasedUsers, begun: () => begun }
}

const erase = (deactivation: Deactivation, user: EndingUser) =>
  deactivation.deactivate(user, { erase: true, idServer: undefined })
const finish = (userNid: number) => db.tx((tx) => tx.query('DELETE FROM deactivation WHERE user_nid = $1', [userNid]))

async function endedUser(deactivation: Deactivation, name: string): Promise<EndingUser> {
  const userId = `@${name}:localhost` as UserId
  const user = { userId, userNid: await makeUser(userId) }
  await erase(deactivation, user)
  await finish(user.userNid)
  return user
}

test('whom a second erasure ends right after the account was opened again stays erased, also in memory', async () => {
  let whenOpened: (() => Promise<void>) | undefined
  const { deactivation, erasedUsers, begun } = await openDeactivation(async () => {
    const next = whenOpened
    whenOpened = undefined
    await next?.()
  })
  const user = await endedUser(deactivation, 'again')
  let erasing: Promise<unknown> | undefined
  whenOpened = async () => {
    const before = begun()
    erasing = erase(deactivation, user)
    // Either it runs now, and is over before the first one goes on; or it waits for that one.
    if (begun() > before) await erasing
  }
  expect(await deactivation.reactivate(user, 'hash')).toBe(true)
  expect(erasing).toBeDefined()
  await erasing
  expect(erasedUsers.positionOf(user.userNid)).toBe(7)
  const rows = await db.query('SELECT erased_pos FROM account WHERE user_nid = $1', [user.userNid])
  expect(rows).toEqual([{ erased_pos: 7 }])
})

test('of two operators who open an account at once, with a password each, one is told that the other was first', async () => {
  const { deactivation } = await openDeactivation()
  const config = { min_length: 8, scrypt: { log2_cost: 4, block_size: 8, parallelism: 1 } }
  const lax = { require_lowercase: false, require_uppercase: false, require_digit: false, require_symbol: false }
  const passwords = createPasswords({ config: { passwords: { ...config, ...lax } }, random: { bytes: randomBytes } })
  // Devices have no part in it.
  const desk = createUserDesk({ config: { server_name: 'localhost' }, db, passwords, deactivation } as never)
  const { userId } = await endedUser(deactivation, 'twice')
  const wished = ['the first of the horses', 'the second of the horses', 'the third of the horses']
  const outcomes = await Promise.allSettled(wished.map((password) => desk.reactivate(userId, password)))
  const account = await findAccount(db, userId)
  expect(account?.deactivated_at).toBeNull()
  for (const [at, outcome] of outcomes.entries()) {
    expect(await passwords.verify(wished[at]!, account!.password_hash)).toBe(outcome.status === 'fulfilled')
    if (outcome.status === 'fulfilled') continue
    expect(outcome.reason).toMatchObject({ status: 409, message: expect.stringContaining('has just opened') })
  }
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  await passwords.close()
})
