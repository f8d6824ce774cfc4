import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { type Account, type Json, login, PASSWORD } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person, personOf, textsOf } from '../people.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const text = (body: string) => ({ msgtype: 'm.text', body })
const countEvents = async (body: string): Promise<number> => {
  const [row] = await house.server.database.db.query<{ count: number }>(
    `SELECT count(*) AS count FROM event WHERE json LIKE '%' || $1 || '%'`,
    [`"body":"${body}"`],
  )
  return row!.count
}

describe('a transaction id', () => {
  it('makes one event of 16 concurrent repeats', async () => {
    const room = await alice.createRoom()
    const path = inRoom(room, '/send/m.room.message/once')
    const answers = await Promise.all(Array.from({ length: 16 }, () => alice.call('PUT', path, text('sixteen'))))
    expect(new Set(answers.map(({ event_id }) => event_id)).size).toBe(1)
    expect(await countEvents('sixteen')).toBe(1)
  })

  it('gives the first event again when only the database remembers it', async () => {
    const room = await alice.createRoom()
    const path = inRoom(room, '/send/m.room.message/kept')
    const { event_id: first } = await alice.call('PUT', path, text('kept'))
    await house.restart()
    expect((await alice.call('PUT', path, text('kept, but later'))).event_id).toBe(first)
    expect(await countEvents('kept, but later')).toBe(0)
    // What was sent beside the repeat is not lost with it.
    const beside = await Promise.all([
      alice.call('PUT', path, text('kept, but later')),
      ...[1, 2, 3].map((i) => alice.call('PUT', inRoom(room, `/send/m.room.message/beside${i}`), text(`beside ${i}`))),
    ])
    expect(beside[0].event_id).toBe(first)
    const { chunk } = await alice.call('GET', inRoom(room, '/messages?dir=f&limit=50'))
    expect(textsOf(chunk).toSorted()).toEqual(['beside 1', 'beside 2', 'beside 3', 'kept'])
  })

  it('counts for one token and one path', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    const ids = [
      await alice.call('PUT', inRoom(room, '/send/m.room.message/same'), text('a')),
      await bob.call('PUT', inRoom(room, '/send/m.room.message/same'), text('b')),
      await alice.call('PUT', inRoom(room, '/send/m.test/same'), text('c')),
      await alice.call('PUT', inRoom(await alice.createRoom(), '/send/m.room.message/same'), text('d')),
    ].map(({ event_id }) => event_id)
    expect(new Set(ids).size).toBe(4)
  })

  it('may be used again after a refusal', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    const path = inRoom(room, '/send/m.room.message/early')
    expect((await bob.ask('PUT', path, text('not yet'))).status).toBe(403)
    await bob.join(room)
    expect((await bob.ask('PUT', path, text('now'))).status).toBe(200)
  })

  it('is the same over both dialects and releases', async () => {
    const room = await alice.createRoom()
    const rest = inRoom(room, '/send/m.room.message/dialects')
    const prefixes = ['/_matrix/client/v3', '/_matrix/client/r0', '/_proto/client/r0', '/_proto/client/v3']
    const ids = new Set<string>()
    for (const prefix of prefixes) ids.add((await alice.call('PUT', prefix + rest, text('dialects'))).event_id)
    expect(ids.size).toBe(1)
  })
})

describe('logging in again on the same device', () => {
  const again = async (): Promise<Account> => {
    const identifier = { type: 'm.id.user', user: 'alice' }
    const body = { type: 'm.login.password', identifier, password: PASSWORD, device_id: alice.deviceId }
    const answer = await house.api.call('POST', '/login', { body })
    return { userId: answer.user_id, deviceId: answer.device_id, token: answer.access_token }
  }
  const OLD = ['/_matrix/client/r0', '/_proto/client/r0', '/_proto/client/v3']
  const put = async (prefix: string, { token }: Account, path: string, body: string): Promise<string> =>
    (await house.api.call('PUT', prefix + path, { token, body: text(body) })).event_id
  const idOf = (events: readonly Json[], eventId: string) =>
    events.find(({ event_id }) => event_id === eventId)?.unsigned?.transaction_id

  test('B13: a repeated transaction id gives the same event, and unsigned.transaction_id with it', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    const path = inRoom(room, '/send/m.room.message/device')
    const first = await alice.call('PUT', path, text('by device'))
    let session = await again()
    for (const isRestarted of [false, true]) {
      if (isRestarted) {
        await house.restart()
        session = await again()
      }
      expect(await put('/_matrix/client/v3', session, path, 'by device, again')).toBe(first.event_id)
      const { chunk } = await house.api.call('GET', inRoom(room, '/messages?dir=b&limit=50'), { token: session.token })
      expect(idOf(chunk, first.event_id)).toBe('device')
      const { rooms } = await house.api.call('GET', '/sync?timeout=0', { token: session.token })
      expect(idOf(rooms.join[room].timeline.events, first.event_id)).toBe('device')
    }
    expect(await countEvents('by device, again')).toBe(0)
    const { chunk } = await bob.call('GET', inRoom(room, '/messages?dir=b&limit=50'))
    expect(idOf(chunk, first.event_id)).toBeUndefined()
    alice = personOf(house.api, session)
  })

  test.each(OLD)('B13: a transaction id counts for one login under %s', async (prefix) => {
    const session = await again()
    alice = personOf(house.api, session)
    const room = await alice.createRoom()
    const path = inRoom(room, '/send/m.room.message/session')
    const first = await put(prefix, session, path, 'by session')
    expect(await put(prefix, session, path, 'by session')).toBe(first)
    const next = await again()
    expect(await put(prefix, next, path, 'by session')).not.toBe(first)
    alice = personOf(house.api, next)
  })

  test('B13: redactions are repeated alike, and another device has its own ids', async () => {
    const room = await alice.createRoom()
    const target = await alice.say(room, 'to be redacted')
    const path = inRoom(room, `/redact/${encodeURIComponent(target)}/gone`)
    const { event_id: first } = await alice.call('PUT', path, {})
    const session = await again()
    expect((await house.api.call('PUT', path, { token: session.token, body: {} })).event_id).toBe(first)
    const other = await login(house.api, 'alice')
    expect((await house.api.call('PUT', path, { token: other.token, body: {} })).event_id).not.toBe(first)
    alice = personOf(house.api, session)
  })

  test('B13: many at once after a login make one event', async () => {
    const room = await alice.createRoom()
    const path = inRoom(room, '/send/m.room.message/race')
    await alice.call('PUT', path, text('raced'))
    const session = await again()
    const ids = await Promise.all(
      Array.from({ length: 16 }, () => put('/_matrix/client/v3', session, path, 'raced again')),
    )
    expect(new Set(ids).size).toBe(1)
    expect(await countEvents('raced again')).toBe(0)
    alice = personOf(house.api, session)
  })
})

describe('several writers', () => {
  it('build anew on what another wrote first, and lose nothing', async () => {
    const room = await alice.createRoom()
    await alice.say(room, 'before')
    const { db } = house.server.database
    // Another process moves the head: every cached room is out of date from here on.
    await db.tx((tx) => tx.query('UPDATE room SET head_version = head_version + 100 WHERE room_id = $1', [room]))
    const sent = await Promise.all(Array.from({ length: 20 }, (_, i) => alice.say(room, `after ${i}`)))
    expect(new Set(sent).size).toBe(20)
    const { chunk } = await alice.call('GET', inRoom(room, '/messages?dir=b&limit=50'))
    expect(textsOf(chunk)).toHaveLength(21)
    const [head] = await db.query<{ head_version: number; events: number }>(
      `SELECT head_version, (SELECT count(*) FROM event e WHERE e.room_nid = room.room_nid) AS events FROM room WHERE room_id = $1`,
      [room],
    )
    expect(head!.head_version).toBe(head!.events + 100)
  })
})

describe('the event graph', () => {
  it('is a line of events, each naming the one before, with depths and positions in order', async () => {
    const room = await alice.createRoom()
    await Promise.all(Array.from({ length: 30 }, (_, i) => alice.say(room, `line ${i}`)))
    const rows = await house.server.database.db.query<{ event_id: string; json: string; room_pos: number }>(
      'SELECT event_id, json, room_pos FROM event JOIN room USING (room_nid) WHERE room_id = $1 ORDER BY room_pos',
      [room],
    )
    rows.forEach(({ json, room_pos }, index) => {
      const { depth, prev_events } = JSON.parse(json)
      expect([depth, room_pos]).toEqual([index + 1, index + 1])
      expect(prev_events).toEqual(index === 0 ? [] : [rows[index - 1]!.event_id])
    })
  })
})

describe('making rooms', () => {
  it('makes as many rooms as were asked for in the same millisecond, in every version', async () => {
    const versions = ['1', '6', '11', '12']
    const rooms = await Promise.all(
      versions.flatMap((room_version) => Array.from({ length: 8 }, () => alice.createRoom({ room_version }))),
    )
    expect(new Set(rooms).size).toBe(32)
    const { joined_rooms } = await alice.call('GET', '/joined_rooms')
    expect(joined_rooms).toEqual(expect.arrayContaining(rooms))
    await Promise.all(rooms.map((room) => alice.say(room, 'here')))
  })
})
