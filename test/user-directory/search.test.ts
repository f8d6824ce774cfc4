import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  MAX_DIRECTORY_CANDIDATES,
  MAX_DIRECTORY_RESULTS,
  MAX_DIRECTORY_WORDS_LOOKED_AT,
} from '../../src/domain/limits/user-directory.ts'
import { type House, openHouse, type Person, personOf } from '../rooms/people.ts'
import { type Json, openApi, PASSWORD, register } from '../support/api.ts'
import { startServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const PATH = '/user_directory/search'
const search = (who: Person, search_term: string, limit?: number): Promise<Json> =>
  who.call('POST', PATH, { search_term, ...(limit !== undefined && { limit }) })
const found = async (who: Person, term: string): Promise<string[]> =>
  (await search(who, term)).results.map(({ user_id }: Json) => user_id)
const finds = (who: Person, term: string, ...whom: Person[]) =>
  waitUntil(`${term} to find ${whom.length}`, async () => {
    const ids = await found(who, term)
    return (
      ids.toSorted().join() ===
      whom
        .map(({ userId }) => userId)
        .toSorted()
        .join()
    )
  })
const named = async (who: Person, displayname: string) =>
  who.call('PUT', `/profile/${encodeURIComponent(who.userId)}/displayname`, { displayname })

describe('the user directory', () => {
  it('finds those in a common room by the beginning of localpart, name and id, in any case and without accents', async () => {
    await named(bob, 'Bôb Ünder 山田太郎')
    const room = await alice.createRoom({ invite: [bob.userId] })
    expect(await found(alice, 'bob')).toEqual([])
    await bob.join(room)
    await finds(alice, 'bob', bob)
    for (const term of [
      'BO',
      'under',
      'ÜND',
      'unde bob',
      '@bob',
      '@bob:',
      '@bob:localhost',
      '@BOB:LOCAL',
      '山田',
      '太郎',
    ]) {
      expect(await found(alice, term)).toEqual([bob.userId])
    }
    for (const term of ['ob', 'under nobody', '@bob:elsewhere', '@under']) expect(await found(alice, term)).toEqual([])
    expect(await found(alice, 'alice')).toEqual([])
    expect(await search(alice, 'bob')).toEqual({
      results: [{ user_id: bob.userId, display_name: 'Bôb Ünder 山田太郎' }],
      limited: false,
    })
  })

  it('loses at once whom nobody shares a room with any more', async () => {
    const [carl, dora] = [await house.person('carl'), await house.person('dora')]
    const room = await carl.createRoom({ preset: 'private_chat', invite: [dora.userId] })
    await dora.join(room)
    await finds(carl, 'dora', dora)
    await dora.leave(room)
    expect(await found(carl, 'dora')).toEqual([])
  })

  it('finds strangers in a room that anyone may join or read, until it is closed (S#16472)', async () => {
    const [erin, fred] = [await house.person('erin'), await house.person('fred')]
    const open = await erin.createRoom({ preset: 'public_chat' })
    await finds(fred, 'erin', erin)
    await erin.setState(open, 'm.room.join_rules', { join_rule: 'invite' })
    await finds(fred, 'erin')
    await erin.setState(open, 'm.room.history_visibility', { history_visibility: 'world_readable' })
    await finds(fred, 'erin', erin)
    await erin.setState(open, 'm.room.history_visibility', { history_visibility: 'shared' })
    await finds(fred, 'erin')
  })

  it('never shows the name that somebody has in one room (S#5677)', async () => {
    const [gina, hank] = [await house.person('gina'), await house.person('hank')]
    const [secret, common] = [await gina.createRoom(), await gina.createRoom({ preset: 'public_chat' })]
    await hank.join(common)
    const member = { membership: 'join', displayname: 'Nickname', avatar_url: 'mxc://localhost/secret' }
    await gina.setState(secret, 'm.room.member', member, gina.userId)
    await finds(hank, 'gina', gina)
    expect((await search(hank, 'gina')).results).toEqual([{ user_id: gina.userId }])
    expect(await found(hank, 'nickname')).toEqual([])
  })

  it('does not find the ignored and those who closed their account (S#19542)', async () => {
    const [ivan, judy] = [await house.person('ivan'), await house.person('judy')]
    await judy.join(await ivan.createRoom({ preset: 'public_chat' }))
    await finds(ivan, 'judy', judy)
    const list = `/user/${encodeURIComponent(ivan.userId)}/account_data/m.ignored_user_list`
    await ivan.call('PUT', list, { ignored_users: { [judy.userId]: {} } })
    expect(await found(ivan, 'judy')).toEqual([])
    await ivan.call('PUT', list, { ignored_users: {} })
    expect(await found(ivan, 'judy')).toEqual([judy.userId])
    const { db } = house.server.database
    const locked = (is: boolean) =>
      db.tx((tx) =>
        tx.query(
          'UPDATE account SET is_locked = $2 WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
          [judy.userId, is],
        ),
      )
    await locked(true)
    expect(await found(ivan, 'judy')).toEqual([])
    await locked(false)
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'judy' }, password: PASSWORD }
    await judy.ask('POST', '/account/deactivate', { auth, erase: true })
    expect(await found(ivan, 'judy')).toEqual([])
  })

  it('puts whole words before beginnings, and gives no more than asked for', async () => {
    const kate = await house.person('kate')
    const room = await kate.createRoom({ preset: 'public_chat' })
    for (const name of ['lizard', 'liz', 'lizbeth']) await (await house.person(name)).join(room)
    await waitUntil('three', async () => (await found(kate, 'liz')).length === 3)
    expect((await found(kate, 'liz'))[0]).toBe('@liz:localhost')
    const two = await search(kate, 'liz', 2)
    expect(two).toMatchObject({ results: { length: 2 }, limited: true })
    expect((await search(kate, 'liz', 3)).limited).toBe(false)
  })

  it('gives ten, and at most fifty', async () => {
    const mona = await house.person('mona')
    const room = await mona.createRoom({ preset: 'public_chat' })
    await house.server.database.db.tx((tx) =>
      tx.query(
        `WITH made AS (INSERT INTO matrix_user (user_id) SELECT '@crowd' || n || ':elsewhere.example' FROM generate_series(1, 60) AS n
           RETURNING user_nid, user_id),
         members AS (INSERT INTO room_member (user_nid, room_nid, membership, event_nid)
           SELECT made.user_nid, room_nid, 'join', 0 FROM made, room WHERE room_id = $1),
         users AS (INSERT INTO directory_user (user_nid, event_nid) SELECT user_nid, 1 FROM made)
         INSERT INTO directory_word SELECT split_part(substr(user_id, 2), ':', 1), user_nid FROM made`,
        [room],
      ),
    )
    expect(await search(mona, 'crowd')).toMatchObject({ results: { length: 10 }, limited: true })
    expect(await search(mona, 'crowd', 1_000)).toMatchObject({
      results: { length: MAX_DIRECTORY_RESULTS },
      limited: true,
    })
  })

  it('finds people of a common room also among more strangers than are looked at', async () => {
    const [paul, quinn] = [await house.person('paul'), await house.person('quinn')]
    await named(quinn, 'Multitude Zz')
    await quinn.join(await paul.createRoom({ preset: 'private_chat', invite: [quinn.userId] }))
    await finds(paul, 'multitude', quinn)
    const crowds = [0, MAX_DIRECTORY_CANDIDATES + 1, MAX_DIRECTORY_WORDS_LOOKED_AT + 1]
    for (const [index, strangers] of crowds.slice(1).entries()) {
      await house.server.database.db.tx((tx) =>
        tx.query(
          `WITH made AS (INSERT INTO matrix_user (user_id) SELECT '@multitude' || n || ':elsewhere.example' FROM generate_series($1::int, $2::int) AS n
             RETURNING user_nid, user_id),
           users AS (INSERT INTO directory_user (user_nid, event_nid) SELECT user_nid, 1 FROM made)
           INSERT INTO directory_word SELECT unnest(ARRAY['multitude', 'multi' || user_nid]), user_nid FROM made`,
          [crowds[index]! + 1, strangers],
        ),
      )
      for (const term of ['mult', 'multi', 'multitude', 'multitude zz'])
        expect(await found(paul, term)).toEqual([quinn.userId])
    }
  })

  it('takes terms that mean something to databases for what they are (S#18172)', async () => {
    const hostile = [
      '%',
      '_',
      ':*',
      '&',
      'a & b',
      '\0',
      '@\0',
      '@',
      "'",
      '\\',
      '\ud800',
      '💩',
      '',
      ' ',
      'x'.repeat(60_000),
    ]
    for (const term of hostile) {
      expect(await alice.ask('POST', PATH, { search_term: term })).toMatchObject({ status: 200, body: { results: [] } })
    }
    const { status } = await alice.ask('POST', PATH, { search_term: 'y'.repeat(1 << 20) })
    expect([200, 413]).toContain(status)
    for (const body of [{}, { search_term: 1 }, { search_term: 'x', limit: -1 }, { search_term: 'x', limit: 'x' }]) {
      expect((await alice.ask('POST', PATH, body)).status).toBe(400)
    }
  })
})

it('finds all local users, or nobody, where the configuration says so', async () => {
  for (const [options, ids] of [
    [{ all_local_users: true }, ['@one:localhost']],
    [{ enabled: false }, []],
  ] as const) {
    const server = await startServer({ user_directory: options })
    const api = openApi(server.baseUrl)
    const [, two] = [await register(api, 'one'), personOf(api, await register(api, 'two'))]
    expect(await found(two, 'one')).toEqual(ids)
    await api.close()
    await server.close()
  }
})

it('enters everyone at its first start', async () => {
  const [nora, otto] = [await house.person('nora'), await house.person('otto')]
  await otto.join(await nora.createRoom({ preset: 'public_chat' }))
  await finds(nora, 'otto', otto)
  const { db } = house.server.database
  // What it still has to enter would be there again.
  await waitUntil('the directory to rest', async () => {
    const [row] = await db.query<{ rests: boolean }>(
      'SELECT event_nid = (SELECT max(event_nid) FROM event) AS rests FROM directory_position',
    )
    return row!.rests
  })
  await db.tx(async (tx) => {
    for (const table of ['directory_user', 'directory_word', 'open_room']) await tx.query(`TRUNCATE ${table}`)
    await tx.query('UPDATE directory_position SET event_nid = 0')
  })
  expect(await found(nora, 'otto')).toEqual([])
  await house.restart()
  await finds(nora, 'otto', otto)
  await finds(alice, 'nora', nora)
})
