import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import {
  forgetOldNews,
  getNews,
  type News,
  putNews,
  removeNews,
  servicesBeside,
  trimNews,
  usersBeside,
} from '../../../src/store/appservices/appservice-news.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())
beforeEach(() => database.db.query('TRUNCATE appservice_news'))

const receipt = (name: string, content: string, appserviceId = 'a'): News => ({
  ...{ appserviceId, kind: 'receipt', name, content },
})
const put = (news: readonly News[], now = 1) => database.db.tx((tx) => putNews(tx, news, now))
const contents = async (id = 'a', after = 0) =>
  (await getNews(database.db, id, after, 100)).map(({ content }) => content)
const message = (sender: string, content: string) =>
  database.db.query(
    `INSERT INTO appservice_news (appservice_id, kind, name, content, noted_at) VALUES ('a', 'message', $1, $2, 1)`,
    [sender, content],
  )

it('puts the newest in the place of older ones, after all others, also within one call', async () => {
  await put([receipt('x', 'x1'), receipt('y', 'y1'), receipt('x', 'other', 'b')])
  await put([receipt('x', 'x2'), receipt('x', 'x3')])
  expect(await contents()).toEqual(['y1', 'x3'])
  expect(await contents('b')).toEqual(['other'])
})

it('keeps what took the place of something that is being answered', async () => {
  await put([receipt('x', 'x1'), receipt('y', 'y1')])
  const upTo = (await getNews(database.db, 'a', 0, 100)).at(-1)!.nid
  await put([receipt('x', 'x2')])
  await database.db.tx((tx) => removeNews(tx, 'a', upTo))
  expect(await contents('a', upTo)).toEqual(['x2'])
})

it('has a cap for each kind: the oldest go first, and a flood displaces itself', async () => {
  for (let n = 0; n < 6; n++) await put([receipt(`r${n}`, `r${n}`)])
  for (let n = 0; n < 8; n++) await message('@flood:hs', `flood ${n}`)
  await message('@quiet:hs', 'quiet')
  await message('@flood:hs', 'flood 8')
  await database.db.tx((tx) => trimNews(tx, 'a', 4))
  expect(await contents()).toEqual(['r2', 'r3', 'r4', 'r5', 'flood 6', 'flood 7', 'quiet', 'flood 8'])
})

it('forgets what is older than anybody waits for', async () => {
  await put([receipt('old', 'old')], 10)
  await put([receipt('new', 'new')], 20)
  expect(await database.db.tx((tx) => forgetOldNews(tx, 20, 100))).toBe(1)
  expect(await contents()).toEqual(['new'])
})

it('finds who shares a room with users of a service', async () => {
  const users = ['@ghost:hs', '@beside:hs', '@left:hs', '@alone:hs'] as UserId[]
  const rows = await database.db.query<{ user_nid: number }>(
    'INSERT INTO matrix_user (user_id) SELECT unnest($1::text[]) RETURNING user_nid',
    [users],
  )
  const [ghost, beside, left, alone] = rows.map(({ user_nid }) => user_nid)
  await database.db.query(`INSERT INTO account (user_nid, created_at, appservice_id) VALUES ($1, 1, 'a')`, [ghost])
  const members = [
    [ghost, 1, 'join'],
    [beside, 1, 'join'],
    [left, 1, 'leave'],
    [alone, 2, 'join'],
  ] as const
  for (const [user, room, membership] of members) {
    await database.db.query(
      'INSERT INTO room_member (user_nid, room_nid, membership, event_nid) VALUES ($1, $2, $3, 1)',
      [...[user, room, membership]],
    )
  }
  expect([...(await usersBeside(database.db, 'a', users))].sort()).toEqual(['@beside:hs', '@ghost:hs'])
  const around = (user: number | undefined) => servicesBeside(database.db, user!, ['a', 'b'])
  expect(await Promise.all([ghost, beside, left, alone].map(around))).toEqual([['a'], ['a'], [], []])
})
