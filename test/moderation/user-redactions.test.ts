import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Office, openOffice } from '../admin/office.ts'
import { type Account, createRoom, type Json, join, sendText, syncPath } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

let office: Office
let alice: Account
let troll: Account
let sent = 0

const enc = encodeURIComponent
const inRoom = (room: string, rest: string) => `/rooms/${enc(room)}${rest}`
const say = (who: Account, room: string, text: string) => sendText(office.api, who.token, room, `t${sent++}`, text)
const textsOf = async (room: string, who = alice) => {
  const { chunk } = await office.api.call('GET', inRoom(room, '/messages?dir=b&limit=100'), { token: who.token })
  return chunk.flatMap(({ content }: Json) => content.body ?? [])
}

async function redact(who: Account, body: object = {}): Promise<Json> {
  const { redact_id } = await office.call('POST', `/v1/user/${enc(who.userId)}/redact`, body)
  return waitUntil('the end of a redaction', async () => {
    const status = await office.call('GET', `/v1/user/redact_status/${redact_id}`)
    return status.status === 'complete' && status
  })
}

async function shared(): Promise<string> {
  const room = await createRoom(office.api, alice.token, { preset: 'public_chat' })
  await join(office.api, troll.token, room)
  return room
}

beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
  troll = await office.person('troll')
})

afterAll(() => office.close())

describe('what a user said is redacted', () => {
  test('in all their rooms, and nothing else is', async () => {
    const rooms = [await shared(), await shared()]
    for (const room of rooms) {
      await say(alice, room, 'kept')
      for (let count = 0; count < 30; count++) await say(troll, room, `spam ${count}`)
    }
    const status = await redact(troll, { reason: 'spam' })
    expect(status.failed_redactions).toEqual({})
    // Their joins too: the names in them.
    expect(status.total_redacted).toBe(62)
    for (const room of rooms) expect(await textsOf(room)).toEqual(['kept'])
    const [row] = await office.server.database.db.query<{ count: number }>(
      "SELECT count(*)::int AS count FROM event WHERE json LIKE '%spam 1%'",
    )
    expect(row?.count).toBe(0)
    expect(await redact(troll)).toMatchObject({ total_redacted: 0 })
    const { scheduled_tasks } = await office.call('GET', '/v1/scheduled_tasks?action_name=redact_all_events')
    expect(scheduled_tasks.map(({ resource_id }: Json) => resource_id)).toEqual([troll.userId, troll.userId])
  })

  test('by whoever may, once they have left', async () => {
    const room = await shared()
    await say(troll, room, 'bye')
    await office.api.call('POST', inRoom(room, '/leave'), { token: troll.token, body: {} })
    expect((await redact(troll)).failed_redactions).toEqual({})
    expect(await textsOf(room)).toEqual([])
    const { chunk } = await office.api.call('GET', inRoom(room, '/messages?dir=b&limit=1'), { token: alice.token })
    expect(chunk[0]).toMatchObject({ type: 'm.room.redaction', sender: alice.userId })
  })

  test('within a time, a number and some rooms', async () => {
    const rooms = [await shared(), await shared()]
    for (const room of rooms) for (const text of ['a', 'b', 'c']) await say(troll, room, text)
    await redact(troll, { rooms: [rooms[0]], limit: 1 })
    expect(await textsOf(rooms[0]!)).toEqual(['b', 'a'])
    expect(await textsOf(rooms[1]!)).toEqual(['c', 'b', 'a'])
    await redact(troll, { before_ts: 1 })
    await redact(troll, { after_ts: Date.now() + 60_000 })
    expect(await textsOf(rooms[1]!)).toEqual(['c', 'b', 'a'])
  })

  test('or why not is said', async () => {
    const room = await createRoom(office.api, troll.token, { preset: 'public_chat' })
    const id = await say(troll, room, 'gone')
    await join(office.api, alice.token, room)
    await office.api.call('POST', inRoom(room, '/leave'), { token: troll.token, body: {} })
    const { failed_redactions } = await redact(troll, { rooms: [room] })
    expect(failed_redactions[id]).toContain('Nobody of this server may redact')
    expect(await textsOf(room)).toEqual(['gone'])
  })

  test('and their invitations are taken back', async () => {
    const victims = [await office.person('victim1'), await office.person('victim2')]
    const room = await createRoom(office.api, troll.token, { invite: victims.map(({ userId }) => userId) })
    const invited = async (who: Account) => {
      const { rooms } = await office.api.call('GET', syncPath({}), { token: who.token })
      return Object.keys(rooms?.invite ?? {})
    }
    await join(office.api, victims[1]!.token, room)
    expect(await invited(victims[0]!)).toEqual([room])
    const status = await redact(troll)
    expect(status.invitations_withdrawn).toBe(1)
    expect(await invited(victims[0]!)).toEqual([])
    const members = await office.call('GET', `/v1/rooms/${enc(room)}/members`)
    expect(members.members).toContain(victims[1]!.userId)
  })

  test('after a restart in the middle', async () => {
    const room = await shared()
    for (const text of ['x', 'y', 'z']) await say(troll, room, text)
    await office.server.database.db.tx((tx) =>
      tx.query(
        `INSERT INTO user_redaction (redaction_id, user_id, request, rooms, redacted, asked_at)
         SELECT 'begun', $1, $2, ARRAY[room_nid], 7, 0 FROM room WHERE room_id = $3`,
        [
          troll.userId,
          JSON.stringify({
            by: null,
            reason: null,
            limit: 100,
            asOperator: false,
            after: null,
            before: null,
            rooms: null,
          }),
          room,
        ],
      ),
    )
    await office.server.restart()
    await waitUntil('the end', async () => {
      const status = await office.call('GET', '/v1/user/redact_status/begun')
      return status.status === 'complete' && status.total_redacted === 11
    })
    expect(await textsOf(room)).toEqual([])
  })

  test('for operators only, and ids are known or not found', async () => {
    const path = `/v1/user/${enc(troll.userId)}/redact`
    expect((await office.ask('POST', path, {}, alice.token)).status).toBe(403)
    const unknown = await office.ask('GET', '/v1/user/redact_status/none')
    expect([unknown.status, unknown.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
    expect((await office.ask('POST', path, { reason: 'x'.repeat(1_000_000) })).status).toBeGreaterThanOrEqual(400)
    expect((await office.ask('POST', path, { limit: 0 })).body.errcode).toBe('M_INVALID_PARAM')
  })
})
