import type { StateLookup } from '../../core/auth/context.ts'
import { readPowerLevels } from '../../core/auth/power-levels.ts'
import type { UserId } from '../../core/ids.ts'
import type { PushContext } from '../../core/push/pushed-event.ts'
import type { Room } from '../rooms/room/room.ts'

/** What push rules need to know of a room's power levels. */
export type PushPowers = Pick<PushContext, 'senderPower' | 'powerToNotify'>

/** The power levels in a state. */
export function powersOf({ version }: Room, sender: UserId, state: StateLookup): PushPowers {
  const create = state('m.room.create', '')
  const levels = readPowerLevels(version, state('m.room.power_levels', '')?.content, create)
  return { senderPower: levels.levelOf(sender), powerToNotify: levels.toNotify }
}

/** The power levels in a room's current state. */
export async function powersIn(room: Room, sender: UserId): Promise<PushPowers> {
  const [create, levels] = await Promise.all([
    room.stateEvent('m.room.create', ''),
    room.stateEvent('m.room.power_levels', ''),
  ])
  return powersOf(room, sender, (type) => (type === 'm.room.create' ? create : levels)?.authPdu)
}
