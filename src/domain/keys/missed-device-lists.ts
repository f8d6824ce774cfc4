import type { ServerName } from '../../core/ids.ts'
import { isObject, type JsonValue } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import { isKnownServer } from '../../store/federation/known-servers.ts'
import {
  forgetMissed,
  listMissed,
  listUsersInRooms,
  type MissedServer,
  noteMissed,
} from '../../store/keys/missed-device-lists.ts'
import type { Clock } from '../clock.ts'
import { DEVICE_LISTS_AT_ONCE, MAX_SERVERS_KNOWN_MISSED } from '../limits/moderation.ts'
import type { Gate } from '../moderation/gate.ts'
import type { PolicyLists } from '../moderation/policy-lists.ts'
import { restAfterWork } from '../spare-time.ts'
import type { DeviceLists } from './device-lists.ts'

/**
 * What servers said of their users' devices while policy lists banned them is refused, and not said again. When such a ban has ended, the
 * lists of all users of that server count as changed, so that clients ask for them.
 */
export interface MissedDeviceLists {
  /** These EDUs of a server are refused. Resolves when it is durable that there were changes among them. */
  refused(server: ServerName, edus: readonly JsonValue[]): Promise<void>
  /** Makes up for what was missed of servers that are not banned any more. @param isOver asked between steps */
  runAll(isOver: () => boolean): Promise<void>
  /** Calls the listener when a ban may have ended. */
  onWake(listener: () => void): void
}

const CHANGES: ReadonlySet<JsonValue | undefined> = new Set(['m.device_list_update', 'm.signing_key_update'])
const SERVERS_AT_ONCE = 100
const NEVER = new AbortController().signal

export function createMissedDeviceLists(parts: {
  readonly db: Database
  readonly clock: Clock
  readonly gate: Pick<Gate, 'shuns'>
  readonly lists: Pick<PolicyLists, 'onChange'>
  readonly deviceLists: Pick<DeviceLists, 'changedElsewhere'>
}): MissedDeviceLists {
  const { db, clock, gate, lists, deviceLists } = parts
  /** Servers that need no further row. */
  const noted = new Set<ServerName>()
  let wake = (): void => {}

  lists.onChange(() => wake())

  async function makeUpFor(missed: MissedServer, isOver: () => boolean): Promise<void> {
    const { server } = missed
    // First, so that what is refused from here on is noted again, with a later time.
    noted.delete(server)
    for (let after = 0; ; ) {
      const begun = performance.now()
      const users = await listUsersInRooms(db.bulk, server, after, DEVICE_LISTS_AT_ONCE)
      // Banned again: the row waits for the end of that.
      if (isOver() || gate.shuns(server) !== undefined) return
      await Promise.all(users.map((nid) => deviceLists.changedElsewhere(nid)))
      const last = users.at(-1)
      if (last === undefined || users.length < DEVICE_LISTS_AT_ONCE) break
      after = last
      await restAfterWork(performance.now() - begun, NEVER)
    }
    await db.tx((tx) => forgetMissed(tx, missed))
  }

  return {
    async refused(server, edus) {
      if (noted.has(server) || !edus.some((edu) => isObject(edu) && CHANGES.has(edu.edu_type))) return
      // Nobody here has devices of a server of which no user is known.
      if (!(await isKnownServer(db, server))) return
      await db.tx((tx) => noteMissed(tx, { server, at: clock.now() }))
      if (noted.size >= MAX_SERVERS_KNOWN_MISSED) noted.clear()
      noted.add(server)
    },
    async runAll(isOver) {
      for (let after = ''; !isOver(); ) {
        const page = await listMissed(db, after, SERVERS_AT_ONCE)
        for (const missed of page) {
          if (isOver()) return
          if (gate.shuns(missed.server) === undefined) await makeUpFor(missed, isOver)
        }
        const last = page.at(-1)
        if (last === undefined || page.length < SERVERS_AT_ONCE) return
        after = last.server
      }
    },
    onWake(listener) {
      wake = listener
    },
  }
}
