import { authorise } from '../../../src/core/auth/rules.ts'
import type { Pdu, Verdict } from '../../../src/core/event/format.ts'
import type { EventId, RoomId, UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { ROOM_VERSIONS, type RoomVersion, roomVersion } from '../../../src/core/room-version.ts'
import { eventIdOf, roomIdOfCreate } from '../../../src/core/signing/event-hash.ts'

export const CREATOR = '@creator:here.example' as UserId
export const ALICE = '@alice:here.example' as UserId
export const BOB = '@bob:there.example' as UserId
export const CAROL = '@carol:here.example' as UserId

/** The parts of an event that matter to a case; the rest is made up. */
export interface Sketch {
  readonly type: string
  readonly sender: string
  readonly state_key?: string
  readonly content?: JsonObject
  readonly [key: string]: unknown
}

/** A room as its state alone, and a judge over it. */
export interface TestRoom {
  readonly version: RoomVersion
  readonly create: Pdu
  readonly createId: EventId
  readonly set: (sketch: Sketch) => TestRoom
  readonly pdu: (sketch: Sketch) => Pdu
  readonly judge: (sketch: Sketch) => Verdict
}

export function versionOf(id: string): RoomVersion {
  return roomVersion(id)!
}

/** All version ids, from one to another. */
export function versions(from: number, to = 12): string[] {
  return ROOM_VERSIONS.map(({ id }) => id).filter((id) => Number(id) >= from && Number(id) <= to)
}

export function pduOf(version: RoomVersion, roomId: RoomId | undefined, sketch: Sketch): Pdu {
  return {
    ...(roomId === undefined ? {} : { room_id: roomId }),
    origin_server_ts: 1,
    depth: 2,
    prev_events: version.referencesCarryHashes
      ? [['$before:here.example' as EventId, { sha256: '' }]]
      : ['$before' as EventId],
    auth_events: [],
    hashes: { sha256: '' },
    signatures: { 'here.example': { 'ed25519:1': '' } },
    ...(version.eventIdFormat === 'opaque' ? { event_id: '$event:here.example' as EventId } : {}),
    content: {},
    ...sketch,
  } as unknown as Pdu
}

export function createPdu(version: RoomVersion, content: JsonObject = {}, more: object = {}): Pdu {
  const creator = version.createNamesCreator ? { creator: CREATOR } : {}
  return pduOf(version, version.roomIdIsCreateHash ? undefined : ('!room:here.example' as RoomId), {
    type: 'm.room.create',
    state_key: '',
    sender: CREATOR,
    depth: 1,
    prev_events: [],
    content: { room_version: version.id, ...creator, ...content },
    ...(version.eventIdFormat === 'opaque' ? { event_id: '$create:here.example' } : {}),
    ...more,
  })
}

/** A room that was just created: its create event and its creator inside. */
export function roomOf(versionId: string, createContent: JsonObject = {}): TestRoom {
  const version = versionOf(versionId)
  const create = createPdu(version, createContent)
  const createId = eventIdOf(version, create)
  const roomId = create.room_id ?? roomIdOfCreate(createId)
  const state = new Map<string, Pdu>([['m.room.create|', create]])
  const pdu = (sketch: Sketch) => pduOf(version, roomId, sketch)
  const room: TestRoom = {
    version,
    create,
    createId,
    pdu,
    set: (sketch) => {
      state.set(`${sketch.type}|${sketch.state_key}`, pdu(sketch))
      return room
    },
    judge: (sketch) => authorise(version, pdu(sketch), (type, key) => state.get(`${type}|${key}`)),
  }
  return room.set(member(CREATOR, 'join'))
}

export function member(userId: string, membership: string, sender = userId, more: JsonObject = {}): Sketch {
  return { type: 'm.room.member', sender, state_key: userId, content: { membership, ...more } }
}

export function joinRule(rule: string): Sketch {
  return { type: 'm.room.join_rules', sender: CREATOR, state_key: '', content: { join_rule: rule } }
}

export function powerLevels(content: JsonObject, sender: string = CREATOR): Sketch {
  return { type: 'm.room.power_levels', sender, state_key: '', content }
}
