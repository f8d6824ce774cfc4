import { afterAll, beforeAll, expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import { openIgnoredUsers } from '../../../src/domain/rooms/read/ignored-users.ts'
import { type House, openHouse, type Person } from '../people.ts'

let house: House

beforeAll(async () => {
  house = await openHouse()
})
afterAll(() => house.close())

const ignore = (who: Person, whom: Person) =>
  who.call('PUT', `/user/${encodeURIComponent(who.userId)}/account_data/m.ignored_user_list`, {
    ignored_users: { [whom.userId]: {} },
  })

it('says after missed commits of everybody who ignores anybody that it may be somebody else', async () => {
  const [alice, bob, troll] = [await house.person('alice'), await house.person('bob'), await house.person('troll')]
  const { db } = house.server.database
  const [{ user_nid: aliceNid }, { user_nid: bobNid }] = (await db.query(
    'SELECT user_nid FROM matrix_user WHERE user_id = ANY($1) ORDER BY user_id',
    [[alice.userId, bob.userId]],
  )) as [{ user_nid: number }, { user_nid: number }]
  await ignore(alice, troll)
  const ignoredUsers = await openIgnoredUsers({ db, budget: new ByteBudget(100_000) })
  expect(await ignoredUsers.of(aliceNid)).toEqual(new Set([troll.userId]))
  const heard: number[] = []
  ignoredUsers.onChange((userNid) => heard.push(userNid))
  // These are the commits that it does not hear of.
  await ignore(alice, bob)
  await ignore(bob, troll)
  await ignoredUsers.readAgain()
  expect(heard.toSorted((a, b) => a - b)).toEqual([aliceNid, bobNid].toSorted((a, b) => a - b))
  expect(await ignoredUsers.of(aliceNid)).toEqual(new Set([bob.userId]))
  expect(await ignoredUsers.of(bobNid)).toEqual(new Set([troll.userId]))
})
