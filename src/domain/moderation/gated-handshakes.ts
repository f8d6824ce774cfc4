import { isUserId, type RoomId } from '../../core/ids.ts'
import { isObject, type ReadJson } from '../../core/json.ts'
import type { Handshakes } from '../federation/handshakes.ts'
import type { Gate } from './gate.ts'

/** Lets users of other servers join and knock through this one, after the gate has let them. Everybody may leave. */
export function createGatedHandshakes(handshakes: Handshakes, gate: Pick<Gate, 'remoteJoin'>): Handshakes {
  /** The service was asked for the template. */
  async function mayEnter(roomId: RoomId, { value }: ReadJson): Promise<void> {
    const sender = isObject(value) ? value.sender : undefined
    if (isUserId(sender)) await gate.remoteJoin(sender, roomId, false)
  }

  return {
    async make(asking, roomId, wanted) {
      const template = await handshakes.make(asking, roomId, wanted)
      if (wanted.membership !== 'leave') await gate.remoteJoin(wanted.userId, roomId, true)
      return template
    },
    async sendJoin(asking, roomId, eventId, event, omitsMembers) {
      await mayEnter(roomId, event)
      return handshakes.sendJoin(asking, roomId, eventId, event, omitsMembers)
    },
    sendLeave: handshakes.sendLeave,
    async sendKnock(asking, roomId, eventId, event) {
      await mayEnter(roomId, event)
      return handshakes.sendKnock(asking, roomId, eventId, event)
    },
  }
}
