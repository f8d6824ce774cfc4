import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import { CONNECTION_UNUSED_MS, MAX_CONNECTIONS_PER_DEVICE } from '../../../src/domain/limits/sliding-sync.ts'
import { type Connections, createConnections } from '../../../src/domain/sync/sliding/connections.ts'
import type { SlidingRecord } from '../../../src/domain/sync/sliding/record.ts'
import { RequiredPart, requiredState } from '../../../src/domain/sync/sliding/required-state.ts'
import { type House, openHouse, type Person, personOf } from '../../rooms/people.ts'
import { login } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { bodiesOf, Connection, FORMS, type Request } from './connection.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let house: House
let alice: Person
let bob: Person
let room: string
/** Where what happens is news for none of these connections. */
let other: string
/** How far the server's clock is ahead of the machine's. */
let ahead = 0
const clock = { now: () => Date.now() + ahead }
let conn = 0

beforeAll(async () => {
  house = await openHouse({ clock })
  alice = await house.person('alice')
  bob = await house.person('bob')
  room = await alice.createRoom({ preset: 'public_chat' })
  other = await alice.createRoom({})
  await bob.join(room)
})
afterAll(() => house.close())

const REQUEST = (): Request => ({ rooms: { [room]: { limit: 10, lazy: true } } })
const rowsOf = ({ userId }: Person) =>
  house.server.database.db.query<{ conn_id: string; bytes: number; used_at: number }>(
    `SELECT conn_id, used_at, length(record) + coalesce(length(base_record), 0) AS bytes
     FROM sliding_connection JOIN matrix_user USING (user_nid) WHERE user_id = $1`,
    [userId],
  )
const namesOf = async (person: Person) => (await rowsOf(person)).map(({ conn_id }) => conn_id)

describe.each(FORMS)('connections that nobody uses, in the %s form', (form) => {
  /** Somebody on a device of their own, so that no connection goes because others come. */
  async function connect(person = bob): Promise<Connection> {
    const device = personOf(house.api, await login(house.api, person.userId))
    return new Connection(device, form, `e${++conn}`)
  }

  /** Connections are looked through when another is written. */
  async function write(): Promise<void> {
    await (await connect(alice)).next(REQUEST())
  }

  it('end after their time, in memory and in the database, and the client begins anew', async () => {
    const [unused, used] = [await connect(), await connect()]
    await unused.next(REQUEST())
    await used.next(REQUEST())
    for (let day = 0; day < CONNECTION_UNUSED_MS / DAY_MS; day += 5) {
      ahead += 5 * DAY_MS
      await alice.say(other, 'somewhere else')
      expect((await used.next(REQUEST())).rooms).toEqual({})
    }
    ahead += 2 * HOUR_MS
    await write()
    await waitUntil('the end', async () => !(await namesOf(bob)).includes(unused.connId!))
    expect(await namesOf(bob)).toContain(used.connId)
    const { status, body } = await unused.ask(REQUEST())
    expect([status, body.errcode]).toEqual([400, 'M_UNKNOWN_POS'])
    expect(body.error).toContain('without `pos`')
    const anew = await unused.next({ ...REQUEST(), pos: null })
    expect(anew.rooms[room].initial).toBe(true)
    await alice.say(room, `in use ${conn}`)
    expect(bodiesOf((await used.next(REQUEST())).rooms[room])).toEqual([`in use ${conn}`])
    await house.restart()
    await alice.say(room, `still ${conn}`)
    expect(bodiesOf((await used.next(REQUEST())).rooms[room])).toEqual([`still ${conn}`])
  })

  it('without rooms never end', async () => {
    const client = await connect()
    const request: Request = { extensions: { to_device: { enabled: true }, e2ee: { enabled: true } } }
    await client.next(request)
    ahead += 2 * CONNECTION_UNUSED_MS
    await write()
    await house.restart()
    expect((await client.next(request)).extensions.e2ee).toBeDefined()
  })

  it('go to the newest of a device whose client never names one twice: rows and their bytes stay few', async () => {
    const hoarder = await house.person(`hoarder-${form}`)
    await hoarder.join(room)
    const bytes: number[] = []
    for (let index = 0; index < 10 * MAX_CONNECTIONS_PER_DEVICE; index++) {
      await new Connection(hoarder, form, `never twice ${index}`).next(REQUEST())
      const rows = await rowsOf(hoarder)
      expect(rows.length).toBeLessThanOrEqual(MAX_CONNECTIONS_PER_DEVICE)
      bytes.push(rows.reduce((sum, row) => sum + row.bytes, 0))
    }
    expect(Math.max(...bytes)).toBeLessThanOrEqual(bytes[MAX_CONNECTIONS_PER_DEVICE]! + 100)
    const last = new Connection(hoarder, form, 'last')
    await last.next(REQUEST())
    expect((await last.next(REQUEST())).rooms).toEqual({})
  })

  it('that had to go for others are unknown, before a restart as after', async () => {
    const crowd = await house.person(`crowd-${form}`)
    await crowd.join(room)
    const first = new Connection(crowd, form, 'first')
    await first.next(REQUEST())
    const { pos } = first
    for (let index = 0; index < MAX_CONNECTIONS_PER_DEVICE; index++) {
      ahead += 1
      await new Connection(crowd, form, `k${index}`).next(REQUEST())
    }
    const ask = async () => {
      await alice.say(other, 'somewhere else')
      const { status, body } = await first.ask({ ...REQUEST(), pos })
      return [status, body.errcode]
    }
    expect(await ask()).toEqual([400, 'M_UNKNOWN_POS'])
    await house.restart()
    expect(await ask()).toEqual([400, 'M_UNKNOWN_POS'])
  })
})

describe('what is kept of connections in memory', () => {
  let connections: Connections
  let budget: ByteBudget
  beforeEach(() => {
    budget = new ByteBudget(64 * 1024 * 1024)
    connections = createConnections({ db: house.server.database.db, clock, budget })
  })

  it('is as much for a client with thousands of names as for one with sixteen', async () => {
    const [owner] = await house.server.database.db.query<{ user_nid: number }>(
      'SELECT user_nid FROM matrix_user WHERE user_id = $1',
      [alice.userId],
    )
    const required = requiredState([new RequiredPart([{ type: 'm.room.name', stateKey: '' }], [], true)])
    const sent = { timelineLimit: 1, required, isDirect: false, upTo: undefined }
    const rooms: SlidingRecord['rooms'] = new Map(Array.from({ length: 300 }, (_, nid) => [nid + 1, sent]))
    const bytes: number[] = []
    for (let index = 0; index < 2_000; index++) {
      const key = { userNid: owner!.user_nid, deviceId: alice.deviceId, connId: `${index}` }
      await connections.advance(key, connections.begin(), rooms)
      bytes.push(budget.bytes)
    }
    expect(bytes.at(-1)).toBeLessThanOrEqual(bytes[MAX_CONNECTIONS_PER_DEVICE]!)
    expect(bytes.at(-1)).toBeGreaterThan(bytes[0]!)
  })
})
