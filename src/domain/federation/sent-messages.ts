import { groupBy } from '../../core/group-by.ts'
import { type ServerName, serverOf } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { encodeCanonical } from '../../core/signing/canonical-json.ts'
import { keepEdus } from '../../store/federation/federation-edus.ts'
import type { ToDeviceEntry } from '../../store/keys/to-device.ts'
import type { Clock, Random } from '../clock.ts'
import type { RemoteToDevice } from '../e2e/to-device.ts'
import { TO_DEVICE_EDU_BYTES } from '../limits.ts'
import type { Outgoing } from './outgoing.ts'

/**
 * To-device messages of our users to remote users. They are stored until the remote server has them (server-server API,
 * `m.direct_to_device`).
 */
export function createSentMessages(deps: {
  readonly clock: Clock
  readonly random: Random
  readonly outgoing: Pick<Outgoing, 'kept' | 'reaches'>
}): RemoteToDevice {
  const { clock, random, outgoing } = deps
  return {
    async send(tx, { sender, type, entries }) {
      const byServer = groupBy(entries, ({ userId }) => serverOf(userId))
      const reached = [...byServer].filter(([server]) => outgoing.reaches(server))
      const edus = reached.flatMap(([server, some]) =>
        portions(some).map((messages) => {
          // Other servers recognise a repeated message by this id.
          const message_id = random.bytes(18).toString('base64url')
          const content = { sender, type, message_id, messages }
          return { server, json: encodeCanonical({ edu_type: 'm.direct_to_device', content }) }
        }),
      )
      await keepEdus(tx, edus, clock.now())
    },
    sent: (entries) => outgoing.kept(new Set<ServerName>(entries.map(({ userId }) => serverOf(userId)))),
  }
}

/** The messages as the `messages` of EDUs, none much larger than an event. */
function portions(entries: readonly ToDeviceEntry[]): JsonObject[] {
  const all: Map<string, Map<string, JsonObject>>[] = []
  let room = 0
  for (const { userId, deviceId, content } of entries) {
    if (room <= 0) {
      all.push(new Map())
      room = TO_DEVICE_EDU_BYTES
    }
    const users = all.at(-1)!
    const devices = users.get(userId) ?? new Map<string, JsonObject>()
    users.set(userId, devices.set(deviceId, JSON.parse(content)))
    room -= content.length
  }
  return all.map((users) => Object.fromEntries([...users].map(([id, devices]) => [id, Object.fromEntries(devices)])))
}
