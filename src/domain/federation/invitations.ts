import { ProtocolError } from '../../core/errors.ts'
import { membershipOf } from '../../core/event/content.ts'
import type { Pdu } from '../../core/event/format.ts'
import { readPdu } from '../../core/event/read.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue, type ReadJson } from '../../core/json.ts'
import { type RoomVersion, roomVersion } from '../../core/room-version.ts'
import { encodeCanonical } from '../../core/signing/canonical-json.ts'
import { signEvent } from '../../core/signing/event-hash.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { Reader } from '../../store/db/db.ts'
import { countOpenInvitations } from '../../store/events/stripped-state.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import { MAX_INVITATION_BYTES, MAX_OPEN_INVITATIONS } from '../limits.ts'
import type { Gate } from '../moderation/gate.ts'
import type { RateLimits } from '../rate-limits.ts'
import type { InvitePermission } from '../rooms/act/invite-permission.ts'
import { isRefusal, type PduChecks } from '../rooms/receive/pdu-checks.ts'
import type { RemoteMembers } from '../rooms/remote/remote-members.ts'
import type { RoomBlocks } from '../rooms/room/blocks.ts'
import { authIdsOf } from '../rooms/room/event-references.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { nameOf } from '../rooms/room/room-event.ts'
import { strippedStateIn } from '../rooms/room/stripped-state.ts'
import { malformed, notTheOne } from './handshake-events.ts'
import { type ServerAccess, shutOut } from './server-access.ts'

/** An invitation of a local user by a remote user. */
export interface ReceivedInvitation {
  readonly roomId: RoomId
  readonly eventId: EventId
  readonly roomVersion: string
  readonly event: ReadJson
  readonly inviteState: JsonValue | undefined
}

/** Receives invitations from other servers (server-server API, "Inviting to a room"). */
export interface Invitations {
  /**
   * Returns the event with this server's signature.
   * @throws ProtocolError `M_INCOMPATIBLE_ROOM_VERSION`, `M_BAD_JSON`, `M_INVALID_PARAM`, `M_FORBIDDEN`, `M_TOO_LARGE`,
   *   `M_LIMIT_EXCEEDED`
   */
  receive(asking: ServerName, invitation: ReceivedInvitation): Promise<JsonObject>
  /**
   * Processes an event that takes back such an invitation or refuses a knock. Returns its id; undefined if there is no such invitation or
   * knock, or the sender may not do that.
   */
  rescind(asking: ServerName, roomId: RoomId, event: ReadJson): Promise<EventId | undefined>
}

export interface InvitationParts {
  readonly db: Reader
  readonly rateLimits: Pick<RateLimits, 'take'>
  readonly bounds: BoundMetrics
  readonly serverName: ServerName
  readonly signingKey: SigningKey
  readonly pduChecks: PduChecks
  readonly remoteMembers: RemoteMembers
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly access: Pick<ServerAccess, 'standing'>
  /** Rooms that the operator has blocked. */
  readonly blocks: Pick<RoomBlocks, 'mustBeFree'>
  /** The numeric id of a local user who may be invited. */
  findUser(userId: UserId): Promise<number | undefined>
  readonly invitePermission: Pick<InvitePermission, 'require'>
  readonly gate: Pick<Gate, 'remoteInvite'>
}

/** Nobody answers many invitations in a short time. */
const RETRY_AFTER_MS = 10 * 60 * 1000

export function createInvitations(parts: InvitationParts): Invitations {
  const { serverName, signingKey, pduChecks, remoteMembers, registry, access, bounds } = parts

  async function check(
    asking: ServerName,
    version: RoomVersion,
    { roomId, eventId, event }: ReceivedInvitation,
  ): Promise<Pdu> {
    const read = readPdu(version, event.value, event.offence)
    if (isRefusal(read)) throw malformed(read)
    const { pdu } = read
    const flaws: readonly [boolean, string][] = [
      [read.isRedacted, 'its hash is not that of its content'],
      [read.eventId !== eventId, 'its id is another than that in the path'],
      [pdu.room_id !== roomId, 'it is for another room'],
      [pdu.type !== 'm.room.member' || pdu.content.membership !== 'invite', 'it is no invitation'],
      [!isUserId(pdu.state_key) || serverOf(pdu.state_key) !== serverName, `it is not for a user of ${serverName}`],
    ]
    const flaw = flaws.find(([isThere]) => isThere)
    if (flaw) throw notTheOne(flaw[1])
    if (serverOf(pdu.sender) !== asking) {
      throw new ProtocolError('M_FORBIDDEN', `${asking} cannot speak for ${pdu.sender}.`)
    }
    const checked = await pduChecks.check({ id: roomId, version }, event)
    if (isRefusal(checked)) throw new ProtocolError('M_FORBIDDEN', `The event is refused: ${checked.reason}.`)
    return pdu
  }

  /** One sync of the user contains all open invitations. */
  async function requirePlace(asking: ServerName, { content }: Pdu, userNid: number): Promise<void> {
    if (Buffer.byteLength(JSON.stringify(content)) > MAX_INVITATION_BYTES) {
      bounds.reached('invitation size')
      throw new ProtocolError('M_TOO_LARGE', `The content of an invitation may have ${MAX_INVITATION_BYTES} bytes.`)
    }
    parts.rateLimits.take('invite', `${asking} ${userNid}`)
    const { ofServer, ofUser } = await countOpenInvitations(parts.db, userNid, asking)
    if (ofServer < MAX_OPEN_INVITATIONS.ofServer && ofUser < MAX_OPEN_INVITATIONS.ofUser) return
    bounds.reached('open invitations')
    const text = 'This user has many invitations that wait for an answer. Send this one when they have answered some.'
    throw new ProtocolError('M_LIMIT_EXCEEDED', text, { extra: { retry_after_ms: RETRY_AFTER_MS } })
  }

  return {
    async receive(asking, invitation) {
      const { roomVersion: id, roomId, eventId } = invitation
      const version = roomVersion(id)
      if (!version) {
        const text = `This server does not know rooms of version ${id}.`
        throw new ProtocolError('M_INCOMPATIBLE_ROOM_VERSION', text, { extra: { room_version: id } })
      }
      const pdu = await check(asking, version, invitation)
      await parts.blocks.mustBeFree(roomId)
      if ((await access.standing(asking, await registry.get(roomId))) === 'refused') throw shutOut(asking)
      const userNid = await parts.findUser(pdu.state_key as UserId)
      if (userNid === undefined) throw new ProtocolError('M_FORBIDDEN', `${pdu.state_key} cannot be invited.`)
      await parts.invitePermission.require(pdu.sender, pdu.state_key as UserId)
      await requirePlace(asking, pdu, userNid)
      await parts.gate.remoteInvite(pdu.sender, pdu.state_key as UserId, roomId, pdu as unknown as JsonObject)
      const { unsigned: _, ...signed } = signEvent(version, pdu, serverName, signingKey)
      const state = strippedStateIn(invitation.inviteState, () => bounds.reached('stripped state'))
      await remoteMembers.record({ version, roomId, eventId, pdu: signed as Pdu, json: encodeCanonical(signed), state })
      return signed as JsonObject
    },

    async rescind(asking, roomId, event) {
      const target = isObject(event.value) ? event.value.state_key : undefined
      const userNid = isUserId(target) && serverOf(target) === serverName ? await parts.findUser(target) : undefined
      const pending = userNid === undefined ? undefined : await remoteMembers.pendingOf(userNid, roomId)
      if (!pending) return undefined
      const { version } = pending.room
      const read = await pduChecks.check({ id: roomId, version }, event)
      if (isRefusal(read)) return undefined
      const { pdu, eventId, json } = read
      const isEnd =
        pdu.type === 'm.room.member' && (pdu.content.membership === 'leave' || pdu.content.membership === 'ban')
      if (!isEnd || serverOf(pdu.sender) !== asking) return undefined
      // We do not know the room's power levels. So a user of the inviting server may take back an invitation. For a knock any sender
      // counts, because only the room knows who may refuse it.
      const isTheirs =
        membershipOf(pending.event) === 'knock'
          ? authIdsOf(pdu).includes(nameOf(pending.event))
          : serverOf(pending.event.sender) === asking && !(await remoteMembers.isOutdated(pdu, pending.event))
      if (!isTheirs) return undefined
      await remoteMembers.record({ version, roomId, eventId, pdu, json, state: [], ends: pending.event })
      return eventId
    },
  }
}
