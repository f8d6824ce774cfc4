import { afterAll, beforeAll, expect, test } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import { insertUser } from '../../../src/domain/accounts/insert-user.ts'
import {
  deleteUserThreepid,
  findThreepidOwner,
  insertUserThreepid,
  listUserThreepids,
} from '../../../src/store/accounts/user-threepids.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase
let users: number[]

beforeAll(async () => {
  database = await createTestDatabase()
  const newUser = { passwordHash: undefined, isGuest: false, isAdmin: false }
  users = []
  for (const name of ['alice', 'bob', 'carol', 'dora']) {
    users.push(await database.db.tx((tx) => insertUser(tx, Date, `@${name}:here` as UserId, newUser)))
  }
})
afterAll(() => database.drop())

const of = (address: string) => ({ medium: 'email', address, validated_at: 1, added_at: 2 }) as const

test('of parallel adds of one address by several users, exactly one succeeds', async () => {
  const { db } = database
  for (let round = 0; round < 10; round++) {
    const address = `wanted${round}@example.org`
    const added = await Promise.all(
      users.map((userNid) => db.tx((tx) => insertUserThreepid(tx, userNid, of(address), 50))),
    )
    expect(added.filter(Boolean)).toHaveLength(1)
    expect((await findThreepidOwner(db, 'email', address))?.user_nid).toBe(users[added.indexOf(true)])
  }
})

test('an address is added again by its owner, listed once, and deleted by its owner alone', async () => {
  const { db } = database
  const [alice, bob] = users as [number, number]
  expect(await db.tx((tx) => insertUserThreepid(tx, alice, of('a@example.org'), 50))).toBe(true)
  expect(await db.tx((tx) => insertUserThreepid(tx, alice, of('a@example.org'), 50))).toBe(true)
  expect((await listUserThreepids(db, alice)).filter(({ address }) => address === 'a@example.org')).toEqual([
    of('a@example.org'),
  ])
  expect(await db.tx((tx) => deleteUserThreepid(tx, bob, 'email', 'a@example.org'))).toBe(false)
  expect(await findThreepidOwner(db, 'email', 'a@example.org')).toEqual({
    ...{ user_nid: alice, user_id: '@alice:here', added_at: 2 },
  })
  expect(await db.tx((tx) => deleteUserThreepid(tx, alice, 'email', 'a@example.org'))).toBe(true)
  expect(await findThreepidOwner(db, 'email', 'a@example.org')).toBeUndefined()
})

test('an account has so many addresses, and no more', async () => {
  const { db } = database
  const dora = users[3] as number
  await db.tx((tx) => tx.query('DELETE FROM user_threepid WHERE user_nid = $1', [dora]))
  const added: boolean[] = []
  for (let n = 0; n < 4; n++) {
    added.push(await db.tx((tx) => insertUserThreepid(tx, dora, of(`d${n}@example.org`), 3)))
  }
  expect(added).toEqual([true, true, true, false])
})
