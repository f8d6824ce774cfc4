import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_CONNECTIONS_PER_DEVICE } from '../../../src/domain/limits/sliding-sync.ts'
import { type House, inRoom, openHouse, type Person } from '../../rooms/people.ts'
import { type Json, login } from '../../support/api.ts'
import { bodiesOf, Connection, FORMS, stateOf } from './connection.ts'

let house: House
let alice: Person
let bob: Person
let room: string
let conn = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
})
afterAll(() => house.close())

const REQUEST = () => ({ rooms: { [room]: { limit: 10 } } })
const EXTENSIONS = { extensions: { to_device: { enabled: true }, e2ee: { enabled: true } } }
const rowsOf = async (userId: string) => {
  const rows = await house.server.database.db.query<{
    conn_id: string
    version: number
    base_version: number | null
    written_by: string
  }>(
    `SELECT conn_id, version, base_version, sliding_connection.xmin::text AS written_by FROM sliding_connection JOIN matrix_user USING (user_nid)
     WHERE user_id = $1 ORDER BY conn_id`,
    [userId],
  )
  return rows
}

describe.each(FORMS)('connections of the %s form', (form) => {
  const connect = (person = bob) => new Connection(person, form, `c${++conn}`)

  it('lazily loaded members of a lost answer come again, though nothing happened meanwhile', async () => {
    const client = connect()
    await client.next({ lists: { all: { range: [0, 9], limit: 1 } } })
    await alice.say(room, 'who says this?')
    await client.next({ lists: { all: { range: [0, 9], limit: 1 } } })
    const opened = { rooms: { [room]: { limit: 10, lazy: true } } }
    const members = (answer: Json) => stateOf(answer.rooms[room]).filter((name) => name.startsWith('m.room.member'))
    const { body: lost } = await client.ask(opened)
    expect(members(lost)).toContain(`m.room.member|${alice.userId}`)
    expect(members(await client.next(opened))).toEqual(members(lost))
    const fresh = connect()
    await fresh.ask(opened)
    await fresh.next({ rooms: { [room]: { limit: 1 } } })
    expect(members(await fresh.next(opened))).toContain(`m.room.member|${alice.userId}`)
  })

  it('15: a repeated position gives the same again, also for another body', async () => {
    const client = connect()
    const first = await client.next(REQUEST())
    await alice.say(room, `said ${conn}`)
    const lost = await client.ask(REQUEST())
    const again = await client.ask(REQUEST())
    expect(again.body.rooms).toEqual({
      [room]: {
        ...lost.body.rooms[room],
        timeline: [expect.objectContaining({ event_id: lost.body.rooms[room].timeline[0].event_id })],
      },
    })
    const other = await client.ask({ lists: { all: { range: [0, 9], limit: 10 } } })
    expect(bodiesOf(other.body.rooms[room])).toEqual([`said ${conn}`])
    // The client that got the last answer goes on from there, and the lost ones are forgotten.
    client.pos = other.body.pos
    expect((await client.next(REQUEST())).rooms).toEqual({})
    expect(first.pos).not.toBe(client.pos)
  })

  it('15: begins a room again whose first answer was lost', async () => {
    const other = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(other)
    const client = connect()
    await client.next(REQUEST())
    const rooms = { [room]: { limit: 5 }, [other]: { limit: 5 } }
    const lost = await client.ask({ rooms })
    expect(lost.body.rooms[other].initial).toBe(true)
    const again = await client.next({ rooms })
    expect(again.rooms[other].initial).toBe(true)
    expect((await client.next({ rooms })).rooms).toEqual({})
  })

  it('16: a thousand replays leave one row with two positions', async () => {
    const eve = await house.person(`eve${form}`)
    await eve.join(room)
    const client = connect(eve)
    await client.next(REQUEST())
    for (let index = 0; index < 300; index++) {
      const { body } = await client.ask({
        rooms: { [room]: { limit: 10 + (index % 5) } },
        lists: { [`l${index}`]: { limit: 1 } },
      })
      expect(body.pos).toBeTypeOf('string')
    }
    const rows = await rowsOf(eve.userId)
    expect(rows).toHaveLength(1)
  })

  it('writes nothing for empty answers, nor for connections without rooms', async () => {
    const eve = await house.person(`quiet${form}`)
    await eve.join(room)
    const extensionsOnly = connect(eve)
    for (let index = 0; index < 3; index++) await extensionsOnly.next(EXTENSIONS)
    expect(await rowsOf(eve.userId)).toEqual([])
    const client = connect(eve)
    await client.next(REQUEST())
    const before = await rowsOf(eve.userId)
    expect(before).toHaveLength(1)
    for (let index = 0; index < 3; index++) await client.next(REQUEST())
    await alice.say(room, 'live')
    expect(bodiesOf((await client.next(REQUEST())).rooms[room])).toEqual(['live'])
    expect(await rowsOf(eve.userId)).toEqual(before)
  })

  it('18: twenty requests at once on one connection all get an answer, and the last goes on', async () => {
    const client = connect()
    await client.next(REQUEST())
    await alice.say(room, 'for all')
    const asked = Array.from({ length: 20 }, (_, index) =>
      client.ask({ lists: { [`l${index}`]: { range: [0, index], limit: 5 } }, timeout: index % 2 === 0 ? 0 : 20_000 }),
    )
    const answers = await Promise.all(asked)
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(bodiesOf((await client.next(REQUEST())).rooms[room])).toEqual(['for all'])
  })

  it('of first requests at once the last begins the connection, and the others are told to begin anew', async () => {
    const client = connect()
    const asked = Array.from({ length: 10 }, () => client.ask({ ...REQUEST(), timeout: 20_000 }))
    const answers = await Promise.all(asked)
    const begun = answers.filter(({ status }) => status === 200)
    expect(begun.length).toBeGreaterThan(0)
    for (const { status, body } of answers) {
      if (status === 200) expect(body.rooms[room].initial).toBe(true)
      else expect([status, body.errcode]).toEqual([400, 'M_UNKNOWN_POS'])
    }
    // Whichever of the answers reaches the client last is the one to go on from, or the client is told to begin anew.
    let goesOn = 0
    for (const { body } of begun) {
      const { status, body: next } = await client.ask({ ...REQUEST(), pos: body.pos })
      if (status === 200) goesOn += 1
      expect(status === 200 ? next.rooms : next.errcode).toEqual(status === 200 ? {} : 'M_UNKNOWN_POS')
    }
    expect(goesOn).toBeGreaterThan(0)
  })

  it('a request that waits gives way to the next on its connection', async () => {
    const client = connect()
    await client.next(REQUEST())
    const waiting = client.ask({ ...REQUEST(), timeout: 30_000 })
    await new Connection(bob, form).next(REQUEST())
    const begun = performance.now()
    const next = await client.next({ lists: { all: { range: [0, 5], limit: 1 } } })
    const first = await waiting
    expect(performance.now() - begun).toBeLessThan(25_000)
    expect([first.status, first.body.rooms]).toEqual([200, {}])
    expect(next.lists.all.count).toBeGreaterThan(0)
  })

  it('refuses positions of other users, devices, connections and times', async () => {
    const client = connect()
    await client.next(REQUEST())
    const { pos } = client
    await client.next({ rooms: { [room]: { limit: 20, state: [['m.room.create', '']] } } })
    await client.next({ rooms: { [room]: { limit: 20, state: [['m.room.create', '']] } } })
    await client.next({
      rooms: {
        [room]: {
          limit: 30,
          state: [
            ['m.room.topic', ''],
            ['m.room.create', ''],
          ],
        },
      },
    })
    await alice.say(room, 'on')
    await client.next({ rooms: { [room]: { limit: 40, state: [['m.room.name', '']] } } })
    const device = await login(house.api, 'bob')
    const callers: Connection[] = [
      new Connection(alice, form, client.connId),
      new Connection(bob, form, 'another'),
      new Connection(
        {
          ...bob,
          ...device,
          ask: (method, path, body) => house.api.request(method, path, { token: device.token, body }),
        },
        form,
        client.connId,
      ),
      client,
    ]
    for (const caller of callers) {
      const { status, body } = await caller.ask({ ...REQUEST(), pos })
      expect([status, body.errcode]).toEqual([400, 'M_UNKNOWN_POS'])
    }
  })

  it('keeps so many connections of a device, the newest', async () => {
    const eve = await house.person(`many${form}`)
    await eve.join(room)
    const first = new Connection(eve, form, 'first')
    await first.next(REQUEST())
    for (let index = 0; index < MAX_CONNECTIONS_PER_DEVICE + 4; index++) {
      await new Connection(eve, form, `k${index}`).next(REQUEST())
    }
    expect(await rowsOf(eve.userId)).toHaveLength(MAX_CONNECTIONS_PER_DEVICE)
  })

  it('40: connections without rooms in two processes of one device do not end each other', async () => {
    const [app, push] = [new Connection(bob, form, 'encryption'), new Connection(bob, form, 'encryption')]
    await app.next(EXTENSIONS)
    await push.next(EXTENSIONS)
    for (let index = 0; index < 100; index++) await (index % 2 === 0 ? app : push).next(EXTENSIONS)
  })

  it('goes on after a restart of the server, also from the position whose answer was lost', async () => {
    const client = connect()
    const wide = { rooms: { [room]: { limit: 20 } } }
    await client.next(REQUEST())
    await alice.say(room, 'before')
    const lost = await client.ask(wide)
    await house.restart()
    const again = await client.next(wide)
    expect(again.rooms[room].timeline.map(({ event_id }: Json) => event_id)).toEqual(
      lost.body.rooms[room].timeline.map(({ event_id }: Json) => event_id),
    )
    await house.restart()
    expect((await client.next(wide)).rooms).toEqual({})
    await alice.say(room, 'after')
    expect(bodiesOf((await client.next(wide)).rooms[room])).toEqual(['after'])
  })

  it('ends with its device', async () => {
    const device = await login(house.api, 'bob')
    const ask = (path: string, body: object) => house.api.call('POST', path, { token: device.token, body })
    const other = new Connection(
      {
        ...bob,
        ...device,
        ask: (method, path, body) => house.api.request(method, path, { token: device.token, body }),
      },
      form,
      'gone',
    )
    await other.next(REQUEST())
    const before = await rowsOf(bob.userId)
    await ask('/logout', {})
    expect((await rowsOf(bob.userId)).length).toBe(before.length - 1)
  })

  it('12 and 13: an idle request waits as long as it says, with counts at the end; account data ends it', async () => {
    const eve = await house.person(`idle${form}`)
    await eve.join(room)
    const client = connect(eve)
    const request = {
      lists: { all: { range: [0, 19] as const, limit: 1 } },
      extensions: { account_data: { enabled: true } },
    }
    await client.next(request)
    const begun = performance.now()
    const idle = await client.next({ ...request, timeout: 500 })
    expect(performance.now() - begun).toBeGreaterThan(450)
    expect(idle).toMatchObject({ lists: { all: { count: 1 } }, rooms: {} })
    const waiting = client.next({ ...request, timeout: 30_000 })
    await eve.call('PUT', `/user/${encodeURIComponent(eve.userId)}/account_data/org.example.x`, { a: 1 })
    expect((await waiting).extensions.account_data.global).toEqual([{ type: 'org.example.x', content: { a: 1 } }])
  })

  it('11: typing does not end a wait for keys and messages', async () => {
    const eve = await house.person(`keys${form}`)
    await eve.join(room)
    const client = connect(eve)
    await client.next(EXTENSIONS)
    let isOver = false
    const waiting = client.next({ ...EXTENSIONS, timeout: 30_000 }).finally(() => {
      isOver = true
    })
    const typing = inRoom(room, `/typing/${encodeURIComponent(alice.userId)}`)
    for (let index = 0; index < 100; index++)
      await alice.call('PUT', typing, { typing: index % 2 === 0, timeout: 30_000 })
    await alice.say(room, 'and words')
    await new Connection(eve, form, 'beside').next(EXTENSIONS)
    expect(isOver).toBe(false)
    await alice.call('PUT', `/sendToDevice/m.test/txn${form}`, {
      messages: { [eve.userId]: { [eve.deviceId]: { n: 1 } } },
    })
    expect((await waiting).extensions.to_device.events).toHaveLength(1)
  })
})
