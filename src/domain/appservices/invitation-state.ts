import { membershipOf } from '../../core/event/content.ts'
import { isUserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { inviteState } from '../rooms/remote/invite-state.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { AppserviceRegistry } from './registry.ts'

/** The stripped state of invitations, by the nid of the event. */
export type InvitationState = ReadonlyMap<number, readonly JsonObject[]>

/** Reads the stripped state for those events of a transaction that invite users of a service. */
export function createInvitationState(parts: {
  readonly services: Pick<AppserviceRegistry, 'claimsOn'>
  readonly registry: Pick<RoomRegistry, 'getByNid'>
}): (serviceId: string, taken: readonly RoomEvent[]) => Promise<InvitationState> {
  const { services, registry } = parts

  function invites(serviceId: string, event: RoomEvent): boolean {
    const target = event.pdu.state_key
    if (event.type !== 'm.room.member' || membershipOf(event) !== 'invite' || !isUserId(target)) return false
    return services.claimsOn('users', target).some(({ service }) => service.id === serviceId)
  }

  async function stateFor({ roomNid, sender }: RoomEvent): Promise<readonly JsonObject[]> {
    // A deleted room has no stripped state.
    const room = await registry.getByNid(roomNid).catch(() => undefined)
    return room ? inviteState(room, sender) : []
  }

  return async (serviceId, taken) => {
    const states = new Map<number, readonly JsonObject[]>()
    /** A bridge invites many users at once when it makes a room. */
    const read = new Map<string, Promise<readonly JsonObject[]>>()
    for (const event of taken) {
      if (!invites(serviceId, event)) continue
      const key = `${event.roomNid} ${event.sender}`
      const state = read.get(key) ?? stateFor(event)
      read.set(key, state)
      states.set(event.nid, await state)
    }
    return states
  }
}
