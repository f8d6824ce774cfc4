import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, createRoom, type Json, join, sendText } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
let alice: Account
let room: string
const ids: string[] = []

const enc = encodeURIComponent
const inRoom = (rest: string, of = room) => `/v1/rooms/${enc(of)}${rest}`

beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
  // The operator is in none of these rooms, and nobody invites them.
  room = await createRoom(office.api, alice.token, {
    name: 'Private',
    initial_state: [{ type: 'm.room.history_visibility', state_key: '', content: { history_visibility: 'joined' } }],
  })
  for (const text of ['one', 'two', 'three', 'four']) {
    ids.push(await sendText(office.api, alice.token, room, text, text))
  }
})

afterAll(() => office.close())

const textsIn = (events: readonly Json[]) => events.flatMap(({ content }) => content.body ?? [])

describe('operators read rooms that they are not in', () => {
  test('GET rooms/{}/messages', async () => {
    const last = await office.call('GET', inRoom('/messages?dir=b&limit=2'))
    expect(textsIn(last.chunk)).toEqual(['four', 'three'])
    const before = await office.call('GET', inRoom(`/messages?dir=b&limit=2&from=${enc(last.end)}`))
    expect(textsIn(before.chunk)).toEqual(['two', 'one'])
    // Forwards, where nothing is said.
    const { chunk } = await office.call('GET', inRoom(`/messages?limit=100`))
    expect(chunk[0].type).toBe('m.room.create')
    expect(textsIn(chunk)).toEqual(['one', 'two', 'three', 'four'])
    const filter = enc(JSON.stringify({ types: ['m.room.name'] }))
    const named = await office.call('GET', inRoom(`/messages?limit=100&filter=${filter}`))
    expect(named.chunk.map(({ type }: Json) => type)).toEqual(['m.room.name'])
  })

  test('GET rooms/{}/context/{}', async () => {
    const around = await office.call('GET', inRoom(`/context/${enc(ids[1]!)}?limit=2`))
    expect(around.event.event_id).toBe(ids[1])
    expect([textsIn(around.events_before), textsIn(around.events_after)]).toEqual([['one'], ['three']])
    expect(around.state.map(({ type }: Json) => type)).toContain('m.room.name')
  })

  test('GET rooms/{}/timestamp_to_event', async () => {
    const first = await office.call('GET', inRoom('/timestamp_to_event?ts=0'))
    const { event } = await office.call('GET', `/v1/fetch_event/${enc(first.event_id)}`)
    expect(event.type).toBe('m.room.create')
    const last = await office.call('GET', inRoom(`/timestamp_to_event?ts=${Date.now() + 1}&dir=b`))
    expect(last.event_id).toBe(ids.at(-1))
  })

  test('GET rooms/{}/hierarchy', async () => {
    const space = await createRoom(office.api, alice.token, { name: 'Space', creation_content: { type: 'm.space' } })
    await office.api.call('PUT', `/rooms/${enc(space)}/state/m.space.child/${enc(room)}`, {
      token: alice.token,
      body: { via: ['localhost'] },
    })
    const { rooms } = await office.call('GET', inRoom('/hierarchy', space))
    expect(rooms.map(({ room_id }: Json) => room_id)).toEqual([space, room])
    const shallow = await office.call('GET', inRoom('/hierarchy?max_depth=0', space))
    expect(shallow.rooms).toHaveLength(1)
  })

  test('GET, DELETE rooms/{}/forward_extremities', async () => {
    const { count, results } = await office.call('GET', inRoom('/forward_extremities'))
    expect([count, results[0].event_id]).toEqual([1, ids.at(-1)])
    expect(results[0].depth).toBeGreaterThan(4)
    expect(await office.call('DELETE', inRoom('/forward_extremities'))).toEqual({ deleted: 0 })
  })

  test.each([
    ['GET', '/messages'],
    ['GET', '/context/$none'],
    ['GET', '/timestamp_to_event?ts=1'],
    ['GET', '/hierarchy'],
    ['GET', '/forward_extremities'],
    ['DELETE', '/forward_extremities'],
  ])('%s %s of an unknown room is not found, and is for administrators', async (method, rest) => {
    const unknown = await office.ask(method, inRoom(rest, '!none:localhost'))
    expect([unknown.status, unknown.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
    expect((await office.ask(method, inRoom(rest), undefined, alice.token)).status).toBe(403)
  })

  test('an event of another room is not in this one', async () => {
    const other = await createRoom(office.api, alice.token)
    const answer = await office.ask('GET', inRoom(`/context/${enc(ids[0]!)}`, other))
    expect([answer.status, answer.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })

  test('and it is in the record', async () => {
    const { acts } = await office.call('GET', `/_hearth/admin/v1/acts?target=${enc(room)}`)
    expect(acts.map(({ act }: Json) => act)).toContain('GET /_synapse/admin/v1/rooms/{roomId}/messages')
  })
})

test('DELETE v1/rooms/{} answers when the room is gone', async () => {
  const bob = await office.person('bob')
  const doomed = await createRoom(office.api, alice.token, { preset: 'public_chat', room_alias_name: 'doomed' })
  await join(office.api, bob.token, doomed)
  const gone = await office.call('DELETE', inRoom('', doomed), { message: 'Over.' })
  expect(gone.kicked_users.toSorted()).toEqual([alice.userId, bob.userId])
  expect([gone.failed_to_kick_users, gone.local_aliases]).toEqual([[], ['#doomed:localhost']])
  expect((await office.ask('GET', inRoom('', doomed))).status).toBe(404)
  const again = await office.ask('DELETE', inRoom('', doomed), {})
  expect([again.status, again.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
})

test('forward extremities are joined', async () => {
  const [row] = await office.server.database.db.query<{ room_nid: number; extremities: number[] }>(
    'SELECT room_nid, extremities FROM room WHERE room_id = $1',
    [room],
  )
  // What a busy room of several servers leaves: two events that nothing refers to.
  const [before] = await office.server.database.db.query<{ event_nid: number }>(
    'SELECT event_nid FROM event WHERE event_id = $1',
    [ids[2]!],
  )
  await office.server.database.db.tx((tx) =>
    tx.query('UPDATE room SET extremities = $2 WHERE room_nid = $1', [
      row!.room_nid,
      [...row!.extremities, before!.event_nid],
    ]),
  )
  await office.server.restart()
  expect((await office.call('GET', inRoom('/forward_extremities'))).count).toBe(2)
  expect(await office.call('DELETE', inRoom('/forward_extremities'))).toEqual({ deleted: 1 })
  await waitUntil('one extremity', async () => (await office.call('GET', inRoom('/forward_extremities'))).count === 1)
  await sendText(office.api, alice.token, room, 'five', 'five')
})
