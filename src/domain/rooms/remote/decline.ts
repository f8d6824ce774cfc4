import type { Logger } from 'pino'
import { ProtocolError } from '../../../core/errors.ts'
import { type BuiltEvent, buildEvent } from '../../../core/event/build.ts'
import type { EventId, ServerName } from '../../../core/ids.ts'
import type { SigningKey } from '../../../core/signing/key.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock, Random } from '../../clock.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { RemoteMembers } from './remote-members.ts'
import { makerOf, type ResidentServers } from './resident-servers.ts'

/**
 * Rejects an invitation to a room of other servers, or takes back a knock. If no server accepts the leave, the user is rid of it all the
 * same.
 */
export type Decline = (
  by: Requester,
  pending: { readonly room: Room; readonly event: RoomEvent },
  reason: string | undefined,
) => Promise<void>

export function createDecline(parts: {
  readonly serverName: ServerName
  readonly signingKey: SigningKey
  readonly clock: Clock
  readonly random: Random
  readonly residentServers: ResidentServers
  readonly remoteMembers: RemoteMembers
  readonly log: Logger
}): Decline {
  const { serverName, signingKey, clock, random, residentServers, remoteMembers, log } = parts

  function ownWord({ id, version }: Room, userId: Requester['userId'], content: { reason?: string }): BuiltEvent {
    return buildEvent(
      version,
      {
        ...{ type: 'm.room.member', room_id: id, sender: userId, state_key: userId },
        ...{ content: { ...content, membership: 'leave' }, origin_server_ts: clock.now() },
        ...{ depth: 1, prev_events: [], auth_events: [] },
        ...(version.eventIdFormat === 'opaque' && {
          event_id: `$${random.bytes(18).toString('base64url')}:${serverName}` as EventId,
        }),
      },
      serverName,
      signingKey,
    )
  }

  return async ({ userId }, { room, event }, reason) => {
    const { id: roomId, version } = room
    const content = reason === undefined ? {} : { reason }
    const via = [...new Set([...(await remoteMembers.waysOf(event)), ...makerOf(roomId)])]
    const { eventId, pdu, json } = await residentServers
      .leave({ roomId, userId, content, via })
      .catch((error: unknown) => {
        if (!(error instanceof ProtocolError)) throw error
        log.info({ roomId, reason: error.message }, 'no server of the room accepted that an invitation was declined')
        return ownWord(room, userId, content)
      })
    await remoteMembers.record({ version, roomId, eventId, pdu, json, state: [], ends: event })
  }
}
