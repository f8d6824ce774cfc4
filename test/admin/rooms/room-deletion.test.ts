import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isDelivered } from '../../../src/store/rooms/room-deletions.ts'
import { BY_ID, BY_NID } from '../../../src/store/rooms/room-purge.ts'
import { type Account, createRoom, type Json, join, sendText, syncPath } from '../../support/api.ts'
import { createTestDatabase } from '../../support/database.ts'
import { waitUntil } from '../../support/wait.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
let alice: Account
let bob: Account
beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
  bob = await office.person('bob')
})
afterAll(() => office.close())

const enc = encodeURIComponent

const ended = (id: string): Promise<Json> =>
  waitUntil('the end of a deletion', async () => {
    const status = await office.call('GET', `/v2/rooms/delete_status/${id}`)
    return ['complete', 'failed'].includes(status.status) && status
  })

async function deleteRoom(room: string, body: object = {}): Promise<Json> {
  const { delete_id } = await office.call('DELETE', `/v2/rooms/${enc(room)}`, body)
  return ended(delete_id)
}

/** Where anything is still said of a room: every table with a column for it, found in the catalogue. */
async function mentions(roomNid: number, roomId: string): Promise<string[]> {
  const { db } = office.server.database
  const columns = await db.query<{ table_name: string; column_name: string; data_type: string }>(
    `SELECT table_name, column_name, data_type FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name IN ('room_nid', 'room_id') ORDER BY table_name, column_name`,
  )
  const found: string[] = []
  for (const { table_name, column_name, data_type } of columns) {
    const value = data_type === 'text' ? roomId : roomNid
    const rows = await db.query(`SELECT FROM ${table_name} WHERE ${column_name} = $1 LIMIT 1`, [value])
    if (rows.length > 0) found.push(`${table_name}.${column_name}`)
  }
  return found
}

async function nidOf(room: string): Promise<number> {
  const [row] = await office.server.database.db.query<{ room_nid: number }>(
    'SELECT room_nid FROM room WHERE room_id = $1',
    [room],
  )
  return row!.room_nid
}

/** Fills every table that a room can have rows in. */
async function busyRoom(): Promise<string> {
  const room = await createRoom(office.api, alice.token, {
    preset: 'public_chat',
    visibility: 'public',
    name: 'Busy',
    room_alias_name: `busy-${Math.random().toString(36).slice(2)}`,
  })
  await join(office.api, bob.token, room)
  const carol = await office.person(`carol-${Math.random().toString(36).slice(2)}`)
  const ofAlice = (method: string, path: string, body?: object) =>
    office.api.call(method, path, { token: alice.token, body })
  await ofAlice('POST', `/rooms/${enc(room)}/invite`, { user_id: carol.userId })
  const later = { delay_ms: 3_600_000, content: { msgtype: 'm.text', body: 'later' } }
  await ofAlice('PUT', `/rooms/${enc(room)}/delayed_event/m.room.message/d1`, later)
  const mention = { msgtype: 'm.text', body: 'bob', 'm.mentions': { user_ids: [bob.userId] } }
  await ofAlice('PUT', `/rooms/${enc(room)}/send/m.room.message/1`, mention)
  const event = await sendText(office.api, bob.token, room, '2', 'hello')
  await ofAlice('POST', `/rooms/${enc(room)}/receipt/m.read/${enc(event)}`, {})
  await ofAlice('POST', `/rooms/${enc(room)}/read_markers`, { 'm.fully_read': event })
  await ofAlice('PUT', `/user/${alice.userId}/rooms/${enc(room)}/account_data/org.x`, { a: 1 })
  await ofAlice('PUT', `/rooms/${enc(room)}/send/m.room.message/3?org.matrix.msc4140.delay=3600000`, mention)
  return room
}

/** Tables that name rooms and keep doing so. */
const KEPT: Readonly<Record<string, string>> = {
  blocked_room: 'says that nobody may come back',
  room_deletion: 'says that it was removed',
  identity_invite: 'is of the identity service, which serves rooms of all servers',
  policy_list: 'is a choice of the operators, who may join the room again',
  report: 'is what users told the administrators',
  backed_up_key: 'is what users keep for themselves, sealed',
}

test('every table that names a room is known', async () => {
  const rows = await office.server.database.db.query<{ table_name: string }>(
    `SELECT DISTINCT table_name FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name IN ('room_nid', 'room_id')`,
  )
  const known = new Set([...BY_NID, ...BY_ID, ...Object.keys(KEPT), 'room', 'event'])
  expect(rows.map(({ table_name }) => table_name).filter((name) => !known.has(name))).toEqual([])
})

describe('a deleted room', () => {
  test('is gone, with every row that spoke of it', async () => {
    const room = await busyRoom()
    const nid = await nidOf(room)
    const before = await mentions(nid, room)
    for (const table of [
      'account_data',
      'delayed_event',
      'event',
      'unread_event',
      'receipt',
      'room_alias',
      'room_member',
      'published_room',
    ]) {
      expect(before.join()).toContain(table)
    }
    const txns = 'SELECT count(*)::int AS count FROM client_txn WHERE event_nid NOT IN (SELECT event_nid FROM event)'
    const status = await deleteRoom(room)
    expect(status).toMatchObject({ status: 'complete', room_id: room })
    expect(status.shutdown_room).toMatchObject({ failed_to_kick_users: [], new_room_id: null })
    expect(status.shutdown_room.kicked_users).toHaveLength(3)
    expect(status.shutdown_room.local_aliases).toHaveLength(1)
    expect(status.rows_removed).toBeGreaterThan(20)
    // What is left says that it was removed.
    expect(await mentions(nid, room)).toEqual(['room_deletion.room_id', 'room_deletion.room_nid'])
    expect(await office.server.database.db.query(txns)).toEqual([{ count: 0 }])
    for (const path of [`/v1/rooms/${enc(room)}`, `/v1/rooms/${enc(room)}/members`]) {
      expect((await office.ask('GET', path)).status).toBe(404)
    }
    expect((await office.call('GET', `/v2/rooms/${enc(room)}/delete_status`)).results).toEqual([status])
  })

  test('is neither written in nor read nor found by its users', async () => {
    const room = await busyRoom()
    await deleteRoom(room)
    const { token } = alice
    for (const [method, path, body] of [
      ['PUT', `/rooms/${enc(room)}/send/m.room.message/9`, { body: 'x' }],
      ['PUT', `/rooms/${enc(room)}/state/m.room.topic`, { topic: 'x' }],
      ['POST', `/rooms/${enc(room)}/join`, {}],
      ['GET', `/rooms/${enc(room)}/messages?dir=b`, undefined],
      ['GET', `/rooms/${enc(room)}/state`, undefined],
    ] as const) {
      const { status } = await office.api.request(method, path, { token, body })
      expect([403, 404], `${method} ${path}`).toContain(status)
    }
    const first = await office.api.call('GET', syncPath({}), { token })
    expect(JSON.stringify(first)).not.toContain(room)
    expect((await office.api.call('GET', '/joined_rooms', { token })).joined_rooms).not.toContain(room)
    expect(JSON.stringify(await office.api.call('GET', '/publicRooms'))).not.toContain(room)
  })

  test('is told to those who wait for news as one they have left', async () => {
    const room = await createRoom(office.api, alice.token, { preset: 'public_chat' })
    await join(office.api, bob.token, room)
    const { next_batch } = await office.api.call('GET', syncPath({}), { token: bob.token })
    const waiting = office.api.call('GET', syncPath({ since: next_batch, timeout: 20_000 }), { token: bob.token })
    await deleteRoom(room)
    const { rooms } = await waiting
    const [last] = rooms.leave[room].timeline.events.slice(-1)
    expect(last).toMatchObject({ type: 'm.room.member', state_key: bob.userId, sender: bob.userId })
    expect(last.content).toEqual({ membership: 'leave' })
  })

  test('can be blocked for good', async () => {
    const room = await createRoom(office.api, alice.token)
    await deleteRoom(room, { block: true })
    expect(await office.call('GET', `/v1/rooms/${enc(room)}/block`)).toEqual({
      block: true,
      user_id: office.boss.userId,
    })
  })

  test('can leave its history behind: its users are out, and that is all', async () => {
    const room = await busyRoom()
    const nid = await nidOf(room)
    const status = await deleteRoom(room, { purge: false })
    expect(status.status).toBe('complete')
    expect(await office.call('GET', `/v1/rooms/${enc(room)}`)).toMatchObject({ joined_members: 0, public: false })
    expect((await mentions(nid, room)).join()).toContain('event.room_nid')
    expect((await deleteRoom(room)).status).toBe('complete')
  })

  test('has a room in its place, where its users read what happened', async () => {
    const room = await createRoom(office.api, alice.token, { preset: 'public_chat', room_alias_name: 'moved' })
    await join(office.api, bob.token, room)
    const invited = await office.person('only-invited')
    await office.api.call('POST', `/rooms/${enc(room)}/invite`, {
      token: alice.token,
      body: { user_id: invited.userId },
    })
    const { shutdown_room } = await deleteRoom(room, {
      new_room_user_id: office.boss.userId,
      room_name: 'What happened',
      message: 'It was removed.',
    })
    const place = shutdown_room.new_room_id
    expect(await office.call('GET', `/v1/rooms/${enc(place)}`)).toMatchObject({ name: 'What happened' })
    expect((await office.call('GET', `/v1/rooms/${enc(place)}/members`)).members).toEqual([
      alice.userId,
      bob.userId,
      office.boss.userId,
    ])
    const { chunk } = await office.api.call('GET', `/rooms/${enc(place)}/messages?dir=b`, { token: bob.token })
    expect(JSON.stringify(chunk)).toContain('It was removed.')
    expect((await office.api.call('GET', `/directory/room/${enc('#moved:localhost')}`)).room_id).toBe(place)
    await expect(sendText(office.api, bob.token, place, '1', 'but')).rejects.toMatchObject({ status: 403 })
  })
})

describe('refused', () => {
  test.each([
    ['/v2/rooms/!nothing:localhost', {}, 404, 'M_NOT_FOUND'],
    ['/v2/rooms/nothing', {}, 400, 'M_INVALID_PARAM'],
  ])('%s %j', async (path, body, status, errcode) => {
    expect(await office.ask('DELETE', path, body)).toMatchObject({ status, body: { errcode } })
  })

  test('a room of other makers than users of this server', async () => {
    const room = await createRoom(office.api, alice.token)
    for (const new_room_user_id of ['@x:other.example', 'x']) {
      const { status } = await office.ask('DELETE', `/v2/rooms/${enc(room)}`, { new_room_user_id })
      expect(status).toBe(400)
    }
  })

  test('a deletion that there is none of', async () => {
    expect((await office.ask('GET', '/v2/rooms/delete_status/nothing')).status).toBe(404)
    expect((await office.ask('GET', '/v2/rooms/!nothing:localhost/delete_status')).status).toBe(404)
  })
})

test('of many who delete a room, one does', async () => {
  const room = await busyRoom()
  const answers = await Promise.all(Array.from({ length: 8 }, () => office.ask('DELETE', `/v2/rooms/${enc(room)}`, {})))
  const begun = answers.filter(({ status }) => status === 200)
  expect(begun).toHaveLength(1)
  for (const { status, body } of answers) if (status !== 200) expect(body.errcode).toMatch(/M_UNKNOWN|M_NOT_FOUND/)
  expect((await ended(begun[0]!.body.delete_id)).status).toBe('complete')
})

test('a room is removed while its users talk, join, read and sync', async () => {
  const room = await busyRoom()
  const nid = await nidOf(room)
  const crowd = await Promise.all(Array.from({ length: 6 }, (_, index) => office.person(`crowd-${index}`)))
  let isOver = false
  const statuses = new Set<number>()
  const talk = async ({ token }: Account) => {
    for (let n = 0; !isOver; n++) {
      const calls = [
        ['POST', `/rooms/${enc(room)}/join`, {}],
        ['PUT', `/rooms/${enc(room)}/send/m.room.message/t${n}`, { msgtype: 'm.text', body: 'x' }],
        ['POST', `/rooms/${enc(room)}/typing/x`, {}],
        ['GET', syncPath({}), undefined],
      ] as const
      for (const [method, path, body] of calls) {
        const answer = await office.api.request(method, path, { token, body })
        statuses.add(answer.status)
        const sent = answer.body?.event_id
        if (sent)
          await office.api.request('POST', `/rooms/${enc(room)}/receipt/m.read/${enc(sent)}`, { token, body: {} })
      }
    }
  }
  const talking = Promise.all(crowd.map(talk))
  await waitUntil(
    'everybody to be in',
    async () => (await office.call('GET', `/v1/rooms/${enc(room)}/members`)).total >= 8,
  )
  const status = await deleteRoom(room)
  isOver = true
  await talking
  expect(status).toMatchObject({ status: 'complete' })
  expect(await mentions(nid, room)).toEqual(['room_deletion.room_id', 'room_deletion.room_nid'])
  expect([...statuses].filter((code) => code === 500)).toEqual([])
  for (const { token } of crowd) await office.api.call('GET', syncPath({}), { token })
})

test('a deletion that a restart breaks off goes on, at whatever step', async () => {
  const begun: { id: string; room: string; nid: number }[] = []
  for (let n = 0; n < 3; n++) {
    const room = await busyRoom()
    const { delete_id } = await office.call('DELETE', `/v2/rooms/${enc(room)}`, {
      new_room_user_id: office.boss.userId,
    })
    begun.push({ id: delete_id, room, nid: await nidOf(room).catch(() => 0) })
  }
  await office.server.restart()
  for (const { id, room, nid } of begun) {
    expect((await ended(id)).status).toBe('complete')
    if (nid > 0) expect(await mentions(nid, room)).toEqual(['room_deletion.room_id', 'room_deletion.room_nid'])
  }
})

test('a purge that was half done is finished, and syncs never stumble over what is left', async () => {
  const room = await busyRoom()
  const nid = await nidOf(room)
  const { db } = office.server.database
  // As a crash would leave it right after the head was removed.
  await office.server.restart()
  await db.tx(async (tx) => {
    await tx.query(
      `INSERT INTO room_deletion (deletion_id, room_id, room_nid, request, status, members, moved, asked_at)
       VALUES ('half-done', $1, $2, '{"purge":true}', 'active', '{}', 0, 1)`,
      [room, nid],
    )
    await tx.query('DELETE FROM room WHERE room_nid = $1', [nid])
  })
  await office.server.restart()
  const { rooms } = await office.api.call('GET', syncPath({}), { token: bob.token })
  expect(rooms?.join?.[room]).toBeUndefined()
  expect(await ended('half-done')).toMatchObject({ status: 'complete' })
  expect(await mentions(nid, room)).toEqual(['room_deletion.room_id', 'room_deletion.room_nid'])
})

test('what other servers have not been sent yet is known, but for those that cannot be reached', async () => {
  const database = await createTestDatabase()
  try {
    const { db } = database
    await db.tx(async (tx) => {
      await tx.query(`INSERT INTO room (room_nid, room_id, room_version, head_version, extremities, depth, last_pos, last_nid,
        notifiable, state_chain, state_seq) VALUES (1, '!r', '11', 1, '{50}', 1, 1, 50, 0, 0, 0)`)
    })
    const run = (text: string) => db.tx((tx) => tx.query(text))
    expect(await isDelivered(db, 1)).toBe(true)
    await run('INSERT INTO federation_sent (position) VALUES (49)')
    expect(await isDelivered(db, 1)).toBe(false)
    await run('UPDATE federation_sent SET position = 50')
    expect(await isDelivered(db, 1)).toBe(true)
    await run("INSERT INTO federation_destination VALUES ('slow.example', 50, 0, 0)")
    expect(await isDelivered(db, 1)).toBe(false)
    await run('UPDATE federation_destination SET failures = 1')
    expect(await isDelivered(db, 1)).toBe(true)
  } finally {
    await database.drop()
  }
})
