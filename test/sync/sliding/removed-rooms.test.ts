import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Office, openOffice } from '../../admin/office.ts'
import { type Person, personOf } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { bodiesOf, Connection, FORMS, type Request, stateOf } from './connection.ts'

let office: Office
let alice: Person
let bob: Person
let conn = 0

beforeAll(async () => {
  office = await openOffice()
  alice = personOf(office.api, await office.person('alice'))
  bob = personOf(office.api, await office.person('bob'))
})
afterAll(() => office.close())

async function sharedRoom(name: string): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat', name })
  await bob.join(room)
  return room
}

async function ended(path: string): Promise<void> {
  const isOver = async () => ['complete', 'failed'].includes((await office.call('GET', path)).status)
  await waitUntil('the end', isOver)
}

/** All of a room goes. */
async function remove(room: string): Promise<void> {
  const { delete_id } = await office.call('DELETE', `/v2/rooms/${encodeURIComponent(room)}`, {})
  await ended(`/v2/rooms/delete_status/${delete_id}`)
}

/** What a room had before an event goes. */
async function purge(room: string, event: string): Promise<void> {
  const path = `/v1/purge_history/${encodeURIComponent(room)}/${encodeURIComponent(event)}`
  const { purge_id } = await office.call('POST', path, { delete_local_events: true })
  await ended(`/v1/purge_history_status/${purge_id}`)
}

/** The rooms that a connection is held to have, by number. */
async function recorded(connId: string): Promise<number[]> {
  const rows = await office.server.database.db.query<{ record: string }>(
    'SELECT record FROM sliding_connection WHERE conn_id = $1',
    [connId],
  )
  return (JSON.parse(rows[0]!.record).rooms as number[][]).map(([nid]) => nid!)
}

const LISTED: Request = { lists: { all: { range: [0, 9], limit: 5, state: [['m.room.name', '']] } } }

describe.each(FORMS)('rooms that an administrator removes, in the %s form', (form) => {
  const connect = (person = bob) => new Connection(person, form, `gone${++conn}`)

  /** Whether an answer's room says to its user that they are out of it. */
  const saysLeave = (room: Json, { userId } = bob): boolean => {
    if (form === 'merged') return room.membership === 'leave'
    const own = room.required_state.find(({ state_key: key }: Json) => key === userId)
    return own?.type === 'm.room.member' && own.content.membership === 'leave' && own.event_id.startsWith('$')
  }

  it('are told to whoever was away, once, and again if that answer was lost', async () => {
    const stays = await sharedRoom('stays')
    const goes = await sharedRoom('goes')
    const client = connect()
    const before = await client.next(LISTED)
    expect(Object.keys(before.rooms)).toEqual(expect.arrayContaining([stays, goes]))
    expect(await recorded(client.connId!)).toHaveLength(Object.keys(before.rooms).length)
    await remove(goes)
    await alice.say(stays, 'still here')
    const { body: lost } = await client.ask(LISTED)
    expect(saysLeave(lost.rooms[goes])).toBe(true)
    expect(bodiesOf(lost.rooms[stays])).toEqual(['still here'])
    const again = await client.next(LISTED)
    expect(saysLeave(again.rooms[goes])).toBe(true)
    expect(again.lists.all.count).toBe(before.lists.all.count - 1)
    expect((await client.next(LISTED)).rooms).toEqual({})
    expect(await recorded(client.connId!)).toHaveLength(Object.keys(before.rooms).length - 1)
    expect((await connect().next(LISTED)).rooms[goes]).toBeUndefined()
  })

  it('are told over a restart, to subscribers and to clients that look at other rooms by now', async () => {
    const stays = await sharedRoom('stays')
    const goes = await sharedRoom('goes')
    const subscriber = connect()
    const both = { rooms: { [goes]: { limit: 3 }, [stays]: { limit: 3 } } }
    await subscriber.next(both)
    const other = connect()
    await other.next(both)
    await other.next({ rooms: { [stays]: { limit: 3 } } })
    await remove(goes)
    await office.server.restart()
    expect(saysLeave((await subscriber.next(both)).rooms[goes])).toBe(true)
    expect((await subscriber.next(both)).rooms).toEqual({})
    expect(saysLeave((await other.next({ rooms: { [stays]: { limit: 3 } } })).rooms[goes])).toBe(true)
    await alice.say(stays, 'on')
    expect(bodiesOf((await subscriber.next(both)).rooms[stays])).toEqual(['on'])
  })

  it('end a wait by the leave, while many connections hold them', async () => {
    const goes = await sharedRoom('goes')
    const request = { rooms: { [goes]: { limit: 3, state: [['m.room.member', '$ME']] as const } } }
    const clients = Array.from({ length: 4 }, () => connect())
    for (const client of clients) await client.next(request)
    const waiting = clients.map((client) => client.next({ ...request, timeout: 60_000 }))
    await remove(goes)
    for (const answer of await Promise.all(waiting)) expect(saysLeave(answer.rooms[goes])).toBe(true)
    for (const client of clients) await client.next(request)
    for (const client of clients) expect((await client.next(request)).rooms).toEqual({})
  })

  it('are told without what was in them, also where only an invitation was shown', async () => {
    const room = await alice.createRoom({ preset: 'private_chat', name: 'secret' })
    await alice.invite(room, bob)
    const client = connect()
    const invited = await client.next({ lists: { all: { range: [0, 0], limit: 5 } } })
    expect(Object.keys(invited.rooms)).toEqual([room])
    await remove(room)
    const { rooms } = await client.next({ lists: { all: { range: [0, 0], limit: 5 } } })
    expect(saysLeave(rooms[room])).toBe(true)
    expect(JSON.stringify(rooms[room])).not.toContain('secret')
  })

  it('whose history went are limited, with the state that is so now', async () => {
    const room = await sharedRoom('history')
    const client = connect()
    const request: Request = {
      rooms: {
        [room]: {
          limit: 20,
          state: [
            ['m.room.topic', ''],
            ['m.room.name', ''],
          ],
        },
      },
    }
    const first = await client.next(request)
    expect(first.rooms[room].initial).toBe(true)
    await alice.setState(room, 'm.room.topic', { topic: 'new' })
    await alice.say(room, 'goes')
    await alice.say(room, 'goes too')
    const kept = await alice.say(room, 'stays')
    await alice.say(room, 'stays too')
    await purge(room, kept)
    for (const answer of [await client.ask(request), await (await restarted(client)).ask(request)]) {
      const section = answer.body.rooms[room]
      expect(bodiesOf(section)).toEqual(['stays', 'stays too'])
      expect(stateOf(section)).toContain('m.room.topic|')
      expect(section.limited).toBe(true)
    }
    await client.next(request)
    expect((await client.next(request)).rooms).toEqual({})
    const fresh = (await connect().next(request)).rooms[room]
    expect(fresh).toMatchObject({ initial: true, limited: true, name: 'history' })
    expect(stateOf(fresh)).toEqual(expect.arrayContaining(['m.room.name|', 'm.room.topic|']))
  })

  async function restarted(client: Connection): Promise<Connection> {
    await office.server.restart()
    return client
  }
})
