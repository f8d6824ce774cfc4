import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { Besieged, EVIL } from '../../rooms/besieged.ts'
import { Forge } from '../../rooms/forge.ts'
import type { Json } from '../../support/api.ts'
import { cpuMsOf } from '../../support/slowness.ts'
import { clientOf } from './besieged-client.ts'
import { Connection, FORMS, type Request, type SyncClient } from './connection.ts'

const MEMBERS = 10_000
/** An answer has at most so many events. */
const SAID_AT_ONCE = 100
const CREATOR = `@creator:${EVIL}` as UserId
const member = (index: number) => `@m${index}:${EVIL}` as UserId

let home: Besieged
let ann: SyncClient
let forge: Forge
const joined = new Map<UserId, EventId>()

beforeAll(async () => {
  home = await Besieged.open()
  ann = await clientOf(home, 'ann')
  forge = Forge.open(roomVersion('11')!, 'large', CREATOR)
  for (let index = 0; index < MEMBERS; index++) joined.set(member(index), forge.member(member(index), 'join'))
  await home.takeJoin(forge, 'ann')
  home.answers(forge.answers())
}, 300_000)
afterAll(() => home.close())

const membersIn = (section: Json): string[] =>
  (section?.required_state ?? []).flatMap(({ type, state_key }: Json) => (type === 'm.room.member' ? [state_key] : []))
const sendersIn = (section: Json): string[] => (section?.timeline ?? []).map(({ sender }: Json) => sender)

it('ten thousand members: a lazy client is sent those whom it needs, whoever begins and however often', async () => {
  for (const form of FORMS) {
    const client = new Connection(ann, form, `few-${form}`)
    const request: Request = { lists: { all: { range: [0, 9], limit: 20, lazy: true } } }
    let first: Json
    const took = await cpuMsOf(async () => {
      first = await client.next(request)
    })
    const section = first.rooms[forge.roomId]
    expect(section.joined_count).toBe(MEMBERS + 2)
    expect(membersIn(section).length).toBeLessThanOrEqual(21)
    expect(took).toBeLessThan(1_000)
    // A client that wants all members gets them.
    const whole = await new Connection(ann, form, `all-${form}`).next({
      rooms: { [forge.roomId]: { limit: 1, state: [['m.room.member', '*']] } },
    })
    expect(new Set(membersIn(whole.rooms[forge.roomId])).size).toBe(MEMBERS + 2)
  }
}, 120_000)

describe('ten thousand senders', () => {
  it('are each sent once they are shown; nothing is read, written or kept for those before', async () => {
    const clients = FORMS.map((form) => new Connection(ann, form, `senders-${form}`))
    const request: Request = { rooms: { [forge.roomId]: { limit: SAID_AT_ONCE, lazy: true } } }
    const known = clients.map(() => new Set<string>())
    for (const client of clients) await client.next(request)
    const rows = async () =>
      home.server.db.query<{ conn_id: string; bytes: number; version: number }>(
        `SELECT conn_id, length(record) AS bytes, version FROM sliding_connection WHERE conn_id LIKE 'senders-%' ORDER BY conn_id`,
      )
    const before = await rows()
    const costs: number[] = []
    for (let from = 0; from < MEMBERS; from += SAID_AT_ONCE) {
      const said = Array.from({ length: SAID_AT_ONCE }, (_, place) => forge.say(member(from + place), `${from}`))
      expect(new Set(await home.kinds(forge, said))).toEqual(new Set(['accepted']))
      for (const [index, client] of clients.entries()) {
        const has = known[index]!
        let section: Json
        costs.push(
          await cpuMsOf(async () => {
            section = (await client.next(request)).rooms[forge.roomId]
          }),
        )
        const sent = membersIn(section)
        expect(sent.length).toBeLessThanOrEqual(SAID_AT_ONCE)
        for (const userId of sent) has.add(userId)
        for (const sender of sendersIn(section)) expect(has).toContain(sender)
      }
    }
    for (const has of known) expect(has.size).toBeGreaterThanOrEqual(MEMBERS)
    // A sender of long ago is sent again at most; never left out.
    expect(await home.kinds(forge, [forge.say(member(0), 'again')])).toEqual(['accepted'])
    for (const client of clients)
      expect(sendersIn((await client.next(request)).rooms[forge.roomId])).toEqual([member(0)])
    expect(await rows()).toEqual(before)
    const half = costs.length / 2
    const sum = (some: readonly number[]) => some.reduce((total, cost) => total + cost, 0)
    expect(sum(costs.slice(half))).toBeLessThan(2 * sum(costs.slice(0, half)) + 200)
  }, 600_000)
})
