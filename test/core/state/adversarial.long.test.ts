import { describe, expect, it } from 'vitest'
import type { Pdu } from '../../../src/core/event/format.ts'
import type { EventId, RoomId, UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { eventIdOf, roomIdOfCreate } from '../../../src/core/signing/event-hash.ts'
import type { StateMap } from '../../../src/core/state/trie.ts'
import { HeldEvents } from './held-events.ts'

// What one server can make of a room. A step that is quadratic in any of this would take hours.

const LENGTH = 100_000
/** Two calls for what is in conflict and what authorises it, and two for each doubling of a chain of power levels. */
const MOST_LOADS = 2 + 2 * Math.ceil(Math.log2(LENGTH))
/** All of it takes seconds on a machine that does nothing else. */
const PATIENCE_MS = 120_000
const CREATOR = '@creator:one.example' as UserId

interface Sketched {
  readonly type: string
  readonly content: JsonObject
  readonly stateKey?: string
  readonly auth?: readonly number[]
}

/** A room of one user, whose events cite whatever they are told to, besides the create event and that user's join. */
class LongRoom extends HeldEvents {
  pauses = 0
  readonly #create: number
  readonly #join: number
  #roomId: RoomId | undefined

  constructor(id: string) {
    super(roomVersion(id)!)
    const { version } = this
    if (!version.roomIdIsCreateHash) this.#roomId = '!room:one.example' as RoomId
    const create = this.#pdu({ type: 'm.room.create', content: { creator: CREATOR, room_version: id } })
    const createId = eventIdOf(version, create)
    if (version.roomIdIsCreateHash) this.#roomId = roomIdOfCreate(createId)
    this.#create = this.hold(createId, create, []).nid
    const join = this.#pdu({ type: 'm.room.member', stateKey: CREATOR, content: { membership: 'join' } }, createId)
    this.#join = this.hold('$join' as EventId, join, version.createIsAuthEvent ? [this.#create] : []).nid
  }

  async pause(): Promise<void> {
    this.pauses++
  }

  tell(shown: Sketched): number {
    const own = this.version.createIsAuthEvent ? [this.#create, this.#join] : [this.#join]
    const id = `$event${this.events.size}` as EventId
    return this.hold(id, this.#pdu(shown, '$prev' as EventId), [...own, ...(shown.auth ?? [])]).nid
  }

  powerLevels(topic: number, auth: readonly number[]): number {
    const users = this.version.creatorsAreInfinite ? {} : { [CREATOR]: 100 }
    return this.tell({ type: 'm.room.power_levels', content: { users, events: { 'm.room.topic': topic } }, auth })
  }

  /** The state of those who have seen these, besides the room's first events. */
  state(...nids: number[]): StateMap {
    return this.stateOf([this.#create, this.#join, ...nids])
  }

  #pdu({ type, content, stateKey = '' }: Sketched, prev?: EventId): Pdu {
    const pdu = {
      type,
      sender: CREATOR,
      state_key: stateKey,
      content,
      origin_server_ts: this.events.size,
      depth: 1,
      prev_events: prev === undefined ? [] : [prev],
      auth_events: [],
      hashes: { sha256: '' },
      signatures: {},
    }
    return this.#roomId === undefined ? pdu : Object.assign(pdu, { room_id: this.#roomId })
  }
}

function powerChain(room: LongRoom, length: number): number[] {
  const chain: number[] = []
  for (let index = 0; index < length; index++) chain.push(room.powerLevels(index % 50, chain.slice(-1)))
  return chain
}

const topic = (room: LongRoom, auth: readonly number[]) => room.tell({ type: 'm.room.topic', content: {}, auth })

describe.each(['10', '12'])(
  'in room version %s, in bounded time and in few round trips',
  { timeout: PATIENCE_MS },
  (id) => {
    it('a hundred thousand changes of the power levels are replayed', async () => {
      const room = new LongRoom(id)
      const chain = powerChain(room, LENGTH)
      const last = chain.at(-1)!
      const lastTopic = topic(room, [last])
      const states = [room.state(chain[0]!, topic(room, [chain[0]!])), room.state(last, lastTopic)]
      const resolved = await room.resolve(states)
      expect(room.eventIn(resolved, 'm.room.power_levels')?.nid).toBe(last)
      expect(room.eventIn(resolved, 'm.room.topic')?.nid).toBe(lastTopic)
      expect(room.pauses).toBeGreaterThan(LENGTH / 1000)
      expect(room.loads).toBeLessThanOrEqual(MOST_LOADS)
    })

    it('a membership that was changed fifty thousand times is replayed', async () => {
      const room = new LongRoom(id)
      const [levels] = powerChain(room, 1)
      const rename = (index: number, auth: readonly number[]) =>
        room.tell({
          type: 'm.room.member',
          stateKey: CREATOR,
          content: { membership: 'join', displayname: `${index}` },
          auth,
        })
      let last = rename(0, [levels!])
      const first = last
      for (let index = 1; index < LENGTH / 2; index++) last = rename(index, [levels!, last])
      const states = [room.state(levels!, first), room.state(levels!, last)]
      const resolved = await room.resolve(states)
      expect(room.eventIn(resolved, 'm.room.member', CREATOR)?.nid).toBe(last)
      expect(room.loads).toBeLessThanOrEqual(MOST_LOADS)
    })

    it('a graph in which tens of thousands stand side by side is replayed', async () => {
      const room = new LongRoom(id)
      const [levels] = powerChain(room, 1)
      const width = 20_000
      const setting = (index: number, side: string) =>
        room.tell({
          type: 'org.example.setting',
          stateKey: `${index}`,
          content: { side },
          auth: [levels!],
        })
      const left = Array.from({ length: width }, (_, index) => setting(index, 'left'))
      const right = Array.from({ length: width }, (_, index) => setting(index, 'right'))
      const resolved = await room.resolve([room.state(levels!, ...left), room.state(levels!, ...right)])
      expect(room.eventIn(resolved, 'org.example.setting', `${width - 1}`)?.nid).toBe(right.at(-1))
      expect(resolved.size).toBe(width + 3)
      expect(room.loads).toBeLessThanOrEqual(4)
    })

    it('hundreds of states are resolved at once', async () => {
      const room = new LongRoom(id)
      const [levels] = powerChain(room, 1)
      const topics = Array.from({ length: 500 }, () => topic(room, [levels!]))
      const resolved = await room.resolve(topics.map((nid) => room.state(levels!, nid)))
      expect(room.eventIn(resolved, 'm.room.topic')?.nid).toBe(topics.at(-1))
      expect(room.loads).toBeLessThanOrEqual(4)
    })
  },
)

it('a mainline and a chain beside it are followed to their ends', { timeout: PATIENCE_MS }, async () => {
  const room = new LongRoom('10')
  const [main, aside] = [powerChain(room, LENGTH / 2), powerChain(room, LENGTH / 2)]
  const ends = [main.at(-1)!, aside.at(-1)!] as const
  // In the chains of both states, and so in no difference of them.
  const seen = room.tell({ type: 'org.example.setting', content: {}, auth: ends })
  const [onMain, onAside] = [topic(room, [ends[0]]), topic(room, [ends[1]])]
  const resolved = await room.resolve([room.state(ends[0], seen, onMain), room.state(ends[0], seen, onAside)])
  // What rests on no part of the mainline comes first, later though it was sent, and gives way to what does.
  expect(room.eventIn(resolved, 'm.room.topic')?.nid).toBe(onMain)
  expect(room.loads).toBeGreaterThan(10)
  expect(room.loads).toBeLessThanOrEqual(MOST_LOADS)
})
