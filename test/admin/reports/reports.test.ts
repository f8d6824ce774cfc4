import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_REPORTS_PER_USER } from '../../../src/domain/limits/reports.ts'
import { type House, inRoom, openHouse, type Person } from '../../rooms/people.ts'

let house: House
let admin: Person
let alice: Person
let bob: Person
let room: string
let said: string

const SYNAPSE = '/_synapse/admin/v1'
const reportAt = (roomId: string, eventId: string) => inRoom(roomId, `/report/${encodeURIComponent(eventId)}`)
const notFound = { status: 404, body: { errcode: 'M_NOT_FOUND' } }

beforeAll(async () => {
  house = await openHouse()
  admin = await house.person('admin')
  alice = await house.person('alice')
  bob = await house.person('bob')
  await house.server.database.db.tx((tx) =>
    tx.query(
      'UPDATE account SET is_admin = true WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
      [admin.userId],
    ),
  )
  room = await alice.createRoom({ preset: 'public_chat', name: 'Reported', room_alias_name: 'reported' })
  await bob.join(room)
  said = await bob.say(room, 'rude')
})
afterAll(() => house.close())

describe('a report', () => {
  it('of an event is for those who are in its room; all others learn nothing (S#15300, S#17490)', async () => {
    expect(await alice.ask('POST', reportAt(room, said), { reason: 'rude', score: -100 })).toEqual({
      status: 200,
      body: {},
    })
    expect(await alice.ask('POST', reportAt(room, said), {})).toEqual({ status: 200, body: {} })
    const [invited, stranger, left] = [
      await house.person('invited'),
      await house.person('stranger'),
      await house.person('left'),
    ]
    await alice.invite(room, invited)
    await left.join(room)
    await left.leave(room)
    for (const who of [invited, stranger, left]) {
      const answers = [
        await who.ask('POST', reportAt(room, said), { reason: '' }),
        await who.ask('POST', reportAt(room, '$nothing'), { reason: '' }),
        await who.ask('POST', reportAt('!nowhere:localhost', said), { reason: '' }),
      ]
      for (const answer of answers) expect(answer).toMatchObject(notFound)
      expect(new Set(answers.map(({ body }) => body.error)).size).toBe(1)
    }
    expect(await alice.ask('POST', reportAt(room, '$nothing'), {})).toMatchObject(notFound)
    const other = await alice.createRoom()
    expect(await alice.ask('POST', reportAt(other, said), {})).toMatchObject(notFound)
  })

  it('of a room or a user is for everybody, with a reason that may be empty', async () => {
    const stranger = await house.person('passer-by')
    const user = `/users/${encodeURIComponent(bob.userId)}/report`
    for (const path of [inRoom(room, '/report'), user]) {
      expect(await stranger.ask('POST', path, { reason: '' })).toEqual({ status: 200, body: {} })
      expect(await stranger.ask('POST', path, {})).toMatchObject({ status: 400 })
      expect(await stranger.ask('POST', path, { reason: 7 })).toMatchObject({ status: 400 })
      expect(await stranger.ask('POST', path, { reason: 'x'.repeat(10_001) })).toMatchObject({
        status: 400,
        body: { errcode: 'M_INVALID_PARAM' },
      })
      expect(await stranger.ask('POST', path, { reason: 'a\0b' })).toMatchObject({ status: 400 })
    }
    expect(await stranger.ask('POST', inRoom('!nowhere:localhost', '/report'), { reason: '' })).toMatchObject(notFound)
    expect(await stranger.ask('POST', '/users/@nobody:localhost/report', { reason: '' })).toMatchObject(notFound)
  })

  it('is limited in number, by the newest of each user', async () => {
    const eager = await house.person('eager')
    await house.server.database.db.tx((tx) =>
      tx.query(
        `INSERT INTO report (kind, reporter_nid, received_at, reason, target_user)
         SELECT 'user', user_nid, n, 'old', '@x:localhost' FROM matrix_user, generate_series(1, $2::int) AS n WHERE user_id = $1`,
        [eager.userId, MAX_REPORTS_PER_USER + 5],
      ),
    )
    await eager.call('POST', inRoom(room, '/report'), { reason: 'newest' })
    const path = `${SYNAPSE}/user_reports?limit=1&user_id=${encodeURIComponent(eager.userId)}`
    expect((await admin.call('GET', path)).total).toBe(MAX_REPORTS_PER_USER - 1)
  })
})

describe('an administrator', () => {
  it('lists, reads and removes reports of events, newest first', async () => {
    const { event_reports, total } = await admin.call('GET', `${SYNAPSE}/event_reports`)
    expect(total).toBe(2)
    expect(event_reports[1]).toEqual({
      id: expect.any(Number),
      received_ts: expect.any(Number),
      user_id: alice.userId,
      sender: bob.userId,
      room_id: room,
      name: 'Reported',
      canonical_alias: '#reported:localhost',
      event_id: said,
      reason: 'rude',
      score: -100,
    })
    expect(event_reports[0]).toMatchObject({ reason: null, score: null })
    const first = await admin.call('GET', `${SYNAPSE}/event_reports?limit=1&dir=f`)
    expect([first.event_reports[0].reason, first.next_token]).toEqual(['rude', 1])
    const rest = await admin.call('GET', `${SYNAPSE}/event_reports?dir=f&from=${first.next_token}`)
    expect([rest.event_reports.length, rest.next_token]).toEqual([1, undefined])
    for (const [query, count] of [
      [`room_id=${encodeURIComponent(room)}`, 2],
      ['room_id=elsewhere', 0],
      [`user_id=${encodeURIComponent('@alice')}`, 2],
      ['user_id=bob', 0],
      ['event_sender_user_id=bob', 2],
      ['sender_user_id=bob', 2],
    ] as const) {
      expect((await admin.call('GET', `${SYNAPSE}/event_reports?${query}`)).total).toBe(count)
    }
    const one = `${SYNAPSE}/event_reports/${event_reports[1].id}`
    expect(await admin.call('GET', one)).toMatchObject({ reason: 'rude', event_json: { content: { body: 'rude' } } })
    expect(await admin.ask('DELETE', one)).toEqual({ status: 200, body: {} })
    expect(await admin.ask('GET', one)).toMatchObject(notFound)
    expect(await admin.ask('DELETE', one)).toMatchObject(notFound)
    expect(await admin.ask('GET', `${SYNAPSE}/event_reports/x`)).toMatchObject({ status: 400 })
    expect((await admin.call('GET', `${SYNAPSE}/event_reports`)).total).toBe(1)
  })

  it('lists, reads and removes those of users and rooms', async () => {
    const target = `target_user_id=${encodeURIComponent(bob.userId)}`
    const { user_reports } = await admin.call('GET', `${SYNAPSE}/user_reports?${target}`)
    expect(user_reports).toMatchObject([{ user_id: '@passer-by:localhost', target_user_id: bob.userId, reason: '' }])
    const { room_reports } = await admin.call('GET', '/_hearth/admin/v1/room_reports?user_id=passer')
    expect(room_reports).toMatchObject([
      { user_id: '@passer-by:localhost', room_id: room, name: 'Reported', reason: '' },
    ])
    const places = [
      `${SYNAPSE}/user_reports/${user_reports[0].id}`,
      `/_hearth/admin/v1/room_reports/${room_reports[0].id}`,
    ]
    for (const path of places) {
      expect((await admin.call('GET', path)).reason).toBe('')
      // A report is found under its own kind only.
      expect(await admin.ask('GET', path.replace(/user_reports|room_reports/, 'event_reports'))).toMatchObject({
        status: 404,
      })
      expect(await admin.ask('DELETE', path)).toEqual({ status: 200, body: {} })
      expect(await admin.ask('GET', path)).toMatchObject(notFound)
    }
  })

  it('alone may do so', async () => {
    for (const path of [`${SYNAPSE}/event_reports`, `${SYNAPSE}/user_reports`, `${SYNAPSE}/event_reports/1`]) {
      expect(await alice.ask('GET', path)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    }
  })
})
