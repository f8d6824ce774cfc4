import { randomBytes } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import { buildEvent } from '../../../src/core/event/build.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../../src/core/ids.ts'
import { JsonBytes } from '../../../src/core/json-bytes.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import type { SigningKey } from '../../../src/core/signing/key.ts'
import { buildState } from '../../../src/core/state/trie.ts'
import { loadReferences, writeClientEvent } from '../../../src/domain/rooms/room/client-event.ts'
import { createEventCache } from '../../../src/domain/rooms/room/event-cache.ts'
import { emptyRoom, Room } from '../../../src/domain/rooms/room/room.ts'
import { RoomEvent } from '../../../src/domain/rooms/room/room-event.ts'
import { StateKeys } from '../../../src/domain/rooms/room/state-keys.ts'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** What is left once collecting finds no more: code that is not used any more goes only after several times. */
function heapBytes(): number {
  for (let before = Number.POSITIVE_INFINITY, rounds = 0; ; rounds++) {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    if (rounds > 4 && before - heapUsed - external < 20_000) return heapUsed + external
    before = heapUsed + external
  }
}

/** What a text is once it came from outside: one piece, and nobody else's. */
const own = (text: string): string => Buffer.from(text).toString()
const id = (sigil: string): string => own(`${sigil}${randomBytes(32).toString('base64url')}`)

const SENDERS = Array.from({ length: 50 }, (_, index) => own(`@user${index}:example.org`) as UserId)
const TYPES = { state: own('m.room.member'), message: own('m.room.message') }
const KEY: SigningKey = {
  keyId: own('ed25519:abcdef'),
  publicKey: '',
  sign: () => randomBytes(64).toString('base64url'),
}

/** Events that refer to one another, as those of a room do. */
const ROOM = {
  id: id('!') as RoomId,
  authEvents: [id('$'), id('$'), id('$')] as EventId[],
  newest: id('$') as EventId,
}

/** An event that was written here. */
function builtEvent(nid: number, body: string, isState: boolean): RoomEvent {
  const sender = SENDERS[nid % SENDERS.length]!
  const draft = {
    type: isState ? TYPES.state : TYPES.message,
    sender,
    room_id: ROOM.id,
    content: isState ? { membership: 'join', displayname: body } : { body, msgtype: 'm.text' },
    origin_server_ts: 1_763_000_000_000 + nid,
    depth: nid,
    prev_events: [ROOM.newest],
    auth_events: ROOM.authEvents,
    ...(isState ? { state_key: sender } : {}),
  }
  const { eventId, pdu, json } = buildEvent(roomVersion('12')!, draft, 'example.org' as ServerName, KEY)
  ROOM.newest = eventId
  // Writing an event to the database makes its text one piece.
  Buffer.from(json)
  return RoomEvent.built(
    {
      event_nid: nid,
      room_nid: 7,
      room_pos: nid,
      sender_nid: nid % 50,
      origin_server_ts: draft.origin_server_ts,
      notifiable: nid,
      replaces_nid: null,
      redacted_by: null,
      txn_token: null,
      state_chain: 0,
      state_seq: 5,
      key_id: isState ? nid % 50 : null,
      event_id: eventId,
      type: draft.type,
      txn_id: null,
      standing: null,
      reason: null,
      stream_pos: null,
      current_chain: null,
      current_seq: null,
      auth_nids: isState ? [1, 2, 3] : null,
      auth_content: null,
      has_relations: false,
      json,
    },
    pdu,
  )
}

/** The event as it is read from the database: no text of it is anybody else's. */
function readEvent(...made: Parameters<typeof builtEvent>): RoomEvent {
  const row = builtEvent(...made).toRow()
  return new RoomEvent({ ...row, event_id: own(row.event_id) as EventId, type: own(row.type), json: own(row.json) })
}

/** What a room keeps of an event. */
const eventAt = ({ nid }: Room, pos: number) =>
  ({
    nid: nid * 100 + pos,
    pos,
    streamPos: nid * 100 + pos,
    notifiable: pos,
    isInTimeline: true,
    isHistory: false,
  }) as RoomEvent

function roomOf(nid: number, events: Parameters<typeof emptyRoom>[0]['events'], members: number, messages = 0): Room {
  const plain = ['create', 'power_levels', 'join_rules', 'history_visibility', 'name', 'topic', 'guest_access']
  const keys = [
    ...plain.map((name) => ({ type: own(`m.room.${name}`), state_key: '' })),
    ...Array.from({ length: members }, (_, index) => ({
      type: own('m.room.member'),
      state_key: own(`@somebody-${nid}-${index}:example.org`),
    })),
  ]
  const version = roomVersion('11')!
  const head = {
    ...emptyRoom({ nid, id: id('!') as RoomId, version, events }).committed,
    extremities: [
      { nid, id: id('$') as RoomEvent['id'], reference: id('$') as RoomEvent['id'], after: { chain: 0, seq: 9 } },
    ],
    state: buildState(keys.map((_, index) => nid * 100 + index + 1)),
  }
  const rows = keys.map((key, index) => ({ key_id: index, ...key }))
  const room = new Room({ nid, id: id('!') as RoomId, version, keys: new StateKeys(rows), head, events })
  for (let index = 0; index < members; index++) {
    const userNid = nid * 100 + index
    const userId = own(`@somebody-${nid}-${index}:example.org`) as UserId
    room.localMembers.set(userNid, { userNid, userId, displayName: own(`Somebody ${index}`), since: nid })
  }
  for (let pos = 1; pos <= messages; pos++) {
    const { committed } = room
    const after = { ...committed, pos, seq: committed.seq + 1 }
    const change = {
      chain: committed.chain,
      seq: after.seq,
      keyId: pos % keys.length,
      before: 0,
      eventNid: nid * 100 + pos,
    }
    room.advance([eventAt(room, pos)], [change], after)
  }
  return room
}

/** Writes events into short answers, which are put together as text. */
function write(events: readonly RoomEvent[]): void {
  for (const event of events) {
    const answer = new JsonBytes()
    writeClientEvent(answer, event, { now: 0, tokenNid: undefined })
    expect(answer.length).toBeGreaterThan(event.json.length / 4)
  }
}

/** Nothing is asked of a database here. */
const NO_DATABASE = { query: () => Promise.reject(new Error('nothing is to be read')) }
/** How far the accounts may be off: of events, whose mix changes all the time, and of rooms. */
const SHARE_OF_EVENTS = 0.12
const SHARE = 0.25

describe('what the caches say they hold is what the heap says', { timeout: 300_000 }, () => {
  const cases: [title: string, count: number, body: (nid: number) => string, isState: boolean][] = [
    ['short messages', 8_000, (nid) => `Message ${nid}`, false],
    ['messages of a few hundred letters', 6_000, () => randomBytes(300).toString('hex'), false],
    ['long messages', 1_500, () => randomBytes(8_000).toString('hex'), false],
    ['messages in other scripts', 6_000, (nid) => 'Привет всем '.repeat(20) + nid, false],
    ['members', 8_000, (nid) => `Somebody ${nid}`, true],
  ]
  for (const [title, count, body, isState] of cases) {
    for (const [origin, make] of [
      ['written here', builtEvent],
      ['read', readEvent],
    ] as const) {
      test(`A3: ${title} that were ${origin}, before and after they are shown and parsed`, async () => {
        const budget = new ByteBudget(1_000_000_000)
        const cache = createEventCache({ db: NO_DATABASE, budget })
        const before = heapBytes()
        const expectTrue = (when: string): void => {
          const held = heapBytes() - before
          const said = `${when}: ${budget.bytes} of ${held}`
          expect(Math.abs(budget.bytes / held - 1), said).toBeLessThan(SHARE_OF_EVENTS)
        }
        for (let nid = 1; nid <= count; nid++) cache.put(make(nid, body(nid), isState))
        expectTrue('new')
        const all = [...(await cache.load(Array.from({ length: count }, (_, index) => index + 1))).values()]
        await loadReferences(cache, all)
        write(all)
        expectTrue('shown')
        for (const event of all) expect(event.content).toBeDefined()
        for (const event of all) cache.grown(event)
        all.length = 0
        expectTrue('parsed')
        cache.forgetAll()
        expect(budget.bytes).toBe(0)
      })
    }
  }

  test('A3: small entries that come and go, in a cache that is full and in one that was', () => {
    const budget = new ByteBudget(3_000_000)
    const cache = budget.part<number, { readonly key: number }>({ bytesOf: () => 32 })
    const before = heapBytes()
    for (const count of [30_000, 60_000, 200_000]) {
      for (let key = 0; key < count; key++) cache.set(key, { key })
      for (let key = 0; key < count; key++) cache.set(key, { key })
      const held = heapBytes() - before
      expect(Math.abs(budget.bytes / held - 1), `${budget.bytes} of ${held}`).toBeLessThan(SHARE_OF_EVENTS)
    }
    for (let key = 0; key < 195_000; key++) cache.delete(key)
    const left = heapBytes() - before
    expect(Math.abs(budget.bytes / left - 1), `${budget.bytes} of ${left}`).toBeLessThan(SHARE_OF_EVENTS)
  })

  for (const [members, messages] of [
    [2, 0],
    [8, 0],
    [100, 0],
    [2, 120],
  ] as const) {
    test(`A3: rooms of ${members} with ${messages} recent events that change state`, () => {
      const budget = new ByteBudget(1_000_000_000)
      const events = createEventCache({ db: NO_DATABASE, budget })
      const rooms = budget.part<number, Room>({ bytesOf: ({ bytes }) => bytes })
      const count = members === 100 ? 300 : 2_000
      const before = heapBytes()
      for (let nid = 1; nid <= count; nid++) rooms.set(nid, roomOf(nid, events, members, messages))
      const held = heapBytes() - before
      expect(Math.abs(budget.bytes / held - 1), `${budget.bytes} of ${held}`).toBeLessThan(SHARE)
      rooms.clear()
    })
  }
})
