import { authorise } from '../../../core/auth/rules.ts'
import { authEventKeys, type StateKeyPair } from '../../../core/auth/select.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { nextDepth } from '../../../core/event/build.ts'
import { joinAuthoriserOf } from '../../../core/event/content.ts'
import type { Pdu } from '../../../core/event/format.ts'
import { readPdu } from '../../../core/event/read.ts'
import { type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import type { JsonObject, ReadJson } from '../../../core/json.ts'
import { signEvent } from '../../../core/signing/event-hash.ts'
import type { SigningKey } from '../../../core/signing/key.ts'
import type { Clock } from '../../clock.ts'
import { isRefusal } from '../receive/pdu-checks.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { wholeRoom } from '../room/whole-room.ts'
import { authoriserFor } from './restricted-join.ts'

/** A change of membership that a user of another server requests. */
export interface Wanted {
  readonly type: 'm.room.member'
  readonly sender: UserId
  readonly stateKey: UserId
  readonly content: JsonObject
}

/** An event that the sender's server completes and signs. */
export interface Template {
  readonly roomVersion: string
  readonly event: JsonObject
}

/** How this server, as a resident server, helps users of other servers to join, leave and knock. */
export interface Admission {
  /**
   * An event that the room accepts in its current state (`GET make_join`, `make_leave`, `make_knock`).
   *
   * @throws ProtocolError `M_NOT_FOUND` when we are not in the room, `M_FORBIDDEN` when its rules refuse, and the errors of {@link
   * authoriserFor}
   */
  template(roomId: RoomId, wanted: Wanted): Promise<Template>
  /**
   * Adds our signature to a join that one of our members authorises (`PUT send_join`). Returns any other join unchanged. The receiver of
   * events decides whether the join is accepted.
   *
   * @throws ProtocolError as {@link template}, and `M_BAD_JSON`
   */
  countersign(roomId: RoomId, join: ReadJson): Promise<ReadJson>
}

export interface AdmissionParts {
  readonly registry: RoomRegistry
  readonly serverName: ServerName
  readonly signingKey: SigningKey
  readonly clock: Clock
}

export function createAdmission({ registry, serverName, signingKey, clock }: AdmissionParts): Admission {
  /** If our last member has left a room, our knowledge of it is outdated and we must not answer for it. */
  async function mustBeIn(roomId: RoomId): Promise<Room> {
    const room = await registry.get(roomId)
    if (room && room.localMembers.size > 0) return wholeRoom(registry, room)
    throw new ProtocolError('M_NOT_FOUND', 'This server is not in the room.')
  }

  async function contentOf(room: Room, { sender, content }: Wanted): Promise<JsonObject> {
    const authoriser = content.membership === 'join' ? await authoriserFor(registry, room, sender) : undefined
    return authoriser === undefined ? content : { ...content, join_authorised_via_users_server: authoriser }
  }

  return {
    async template(roomId, wanted) {
      const room = await mustBeIn(roomId)
      const head = room.committed
      const { type, sender, stateKey } = wanted
      const said = { type, sender, state_key: stateKey, content: await contentOf(room, wanted) }
      const state = await stateFor(room, said)
      const { version } = room
      const authKeys = new Set(authEventKeys(version, said).map(keyText))
      const event: Omit<Pdu, 'hashes' | 'signatures'> = {
        ...said,
        room_id: room.id,
        origin: serverName,
        origin_server_ts: clock.now(),
        depth: nextDepth(version, head.depth),
        prev_events: head.extremities.slice(0, head.merged).map(({ reference }) => reference),
        auth_events: [...state].filter(([key]) => authKeys.has(key)).map(([, one]) => one.reference(version)),
      }
      // The signature that the rules require of a restricted join will be ours.
      mustBeAllowed(room, { ...event, hashes: { sha256: '' }, signatures: { [serverName]: {} } } as Pdu, state)
      return { roomVersion: version.id, event: event as JsonObject }
    },

    async countersign(roomId, join) {
      const room = await mustBeIn(roomId)
      const read = readPdu(room.version, join.value, join.offence)
      if (isRefusal(read)) throw new ProtocolError('M_BAD_JSON', read.reason)
      if (read.isRedacted) throw new ProtocolError('M_BAD_JSON', 'The hash of the event is not that of its content.')
      const { pdu } = read
      const authoriser = room.version.restrictedJoins ? joinAuthoriserOf(pdu.content) : undefined
      if (authoriser === undefined || serverOf(authoriser) !== serverName) return join
      if (!isJoinOf(pdu, room.id)) throw new ProtocolError('M_BAD_JSON', 'The event is no join of this room.')
      await authoriserFor(registry, room, pdu.sender)
      const signed = signEvent(room.version, pdu, serverName, signingKey)
      mustBeAllowed(room, signed, await stateFor(room, signed))
      return { value: signed, offence: join.offence }
    },
  }
}

function isJoinOf({ type, content, sender, state_key, room_id }: Pdu, roomId: RoomId): boolean {
  return type === 'm.room.member' && content.membership === 'join' && state_key === sender && room_id === roomId
}

function keyText([type, stateKey]: StateKeyPair): string {
  return `${type}\0${stateKey}`
}

/** The current state that authorises an event. */
async function stateFor(room: Room, event: Parameters<typeof authEventKeys>[1]): Promise<Map<string, RoomEvent>> {
  const keys: readonly StateKeyPair[] = [...authEventKeys(room.version, event), ['m.room.create', '']]
  const found = new Map<string, RoomEvent>()
  for (const pair of keys) {
    const event = await room.stateEvent(...pair)
    if (event) found.set(keyText(pair), event)
  }
  return found
}

function mustBeAllowed(room: Room, event: Pdu, state: ReadonlyMap<string, RoomEvent>): void {
  const verdict = authorise(room.version, event, (type, stateKey) => state.get(keyText([type, stateKey]))?.authPdu)
  if (!verdict.allowed) throw new ProtocolError(verdict.errcode ?? 'M_FORBIDDEN', verdict.reason)
}
