import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import {
  type BanRule,
  type Bans,
  compileBans,
  overreachingRule,
  POLICY_TYPES,
  readBan,
} from '../../core/event/policy-rules.ts'
import type { RoomId, ServerName } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { getState } from '../../core/state/trie.ts'
import type { Database } from '../../store/db/db.ts'
import {
  deletePolicyList,
  insertPolicyList,
  listPolicyLists,
  type PolicyListRow,
} from '../../store/rooms/policy-lists.ts'
import type { Clock } from '../clock.ts'
import { MAX_POLICY_GLOBS, MAX_POLICY_LISTS, MAX_RULES_PER_LIST } from '../limits/moderation.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { SearchSignals } from '../search/search-signals.ts'

/**
 * Rooms whose rules this server enforces (client-server API, "Moderation policy lists"). A list with a rule that bans everybody, or this
 * server, is held: none of its rules counts until that rule is gone.
 */
export interface PolicyLists {
  /** The rules in force; undefined, at no cost, while there is none. */
  bans(): Bans | undefined
  list(): Promise<JsonObject[]>
  /** @throws ProtocolError `M_NOT_FOUND` for a room that nobody of this server is in, `M_TOO_LARGE` for too many lists */
  add(by: string, roomId: RoomId): Promise<JsonObject>
  /** @throws ProtocolError `M_NOT_FOUND` */
  remove(roomId: RoomId): Promise<void>
}

/** What is known of a list. */
interface ReadList {
  readonly state: 'in force' | 'held' | 'unknown'
  readonly rules: readonly BanRule[]
  readonly warning: string | undefined
  readonly roomNid: number | undefined
}

export async function openPolicyLists(parts: {
  readonly serverName: ServerName
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly signals: Pick<SearchSignals, 'subscribe'>
}): Promise<PolicyLists> {
  const { serverName, db, clock, log, registry } = parts
  let lists: ReadonlyMap<RoomId, PolicyListRow & ReadList> = new Map()
  let roomNids: ReadonlySet<number> = new Set()
  let inForce: Bans | undefined
  let reading: Promise<void> | undefined
  let isStale = false

  async function readList(roomId: RoomId): Promise<ReadList> {
    const room = await registry.get(roomId)
    if (!room || room.localMembers.size === 0) {
      const warning = 'Nobody of this server is in the room, so its rules are not known.'
      return { state: 'unknown', rules: [], warning, roomNid: room?.nid }
    }
    const { state } = room.committed
    const nids = [...POLICY_TYPES.keys()].flatMap((type) =>
      [...room.keys.ofType(type)].map(([, keyId]) => getState(state, keyId)),
    )
    const chosen = nids.filter((nid) => nid !== 0).slice(0, MAX_RULES_PER_LIST)
    const events = await room.events(chosen)
    const rules = [...events.values()].flatMap(({ type, pdu }) => readBan(type, pdu.content) ?? [])
    const wide = overreachingRule(rules, serverName)
    if (!wide) return { state: 'in force', rules, warning: undefined, roomNid: room.nid }
    const warning = `Its rule "${wide.glob}" bans everybody, or this server: none of its rules is enforced until it is gone.`
    return { state: 'held', rules, warning, roomNid: room.nid }
  }

  async function readAll(): Promise<void> {
    const read = new Map<RoomId, PolicyListRow & ReadList>()
    for (const row of await listPolicyLists(db)) {
      const list = await readList(row.room_id)
      if (list.state === 'held' && lists.get(row.room_id)?.state !== 'held') {
        log.warn({ room: row.room_id, warning: list.warning }, 'a policy list is held')
      }
      read.set(row.room_id, { ...row, ...list })
    }
    lists = read
    roomNids = new Set([...read.values()].flatMap(({ roomNid }) => roomNid ?? []))
    const rules = [...read.values()].flatMap((list) => (list.state === 'in force' ? list.rules : []))
    inForce = rules.length === 0 ? undefined : compileBans(rules, MAX_POLICY_GLOBS)
  }

  /** Reads all lists; once more if something changes meanwhile. */
  function refresh(): Promise<void> {
    isStale = true
    reading ??= (async () => {
      while (isStale) {
        isStale = false
        await readAll()
      }
    })().finally(() => {
      reading = undefined
    })
    return reading
  }

  const refreshLater = () =>
    void refresh().catch((err) =>
      log.warn({ err }, 'policy lists could not be read; the rules of before stay in force'),
    )
  const concerns = ({ type, roomNid }: RoomEvent) => roomNids.has(roomNid) && POLICY_TYPES.has(type)

  parts.signals.subscribe({
    committed(fresh, redacted) {
      if (roomNids.size > 0 && (fresh.some(concerns) || redacted.some(concerns))) refreshLater()
    },
    missed() {
      if (roomNids.size > 0) refreshLater()
    },
  })
  await refresh()

  const viewOf = ({ room_id, added_by, added_at, state, rules, warning }: PolicyListRow & ReadList): JsonObject => ({
    room_id,
    added_by,
    added_ts: added_at,
    state,
    rules: rules.length,
    ...(warning !== undefined && { warning }),
  })

  return {
    bans: () => inForce,
    async list() {
      await refresh()
      return [...lists.values()].map(viewOf)
    },
    async add(by, roomId) {
      const read = await readList(roomId)
      if (read.state === 'unknown')
        throw new ProtocolError('M_NOT_FOUND', 'Nobody of this server is in that room: join it first.')
      if (!lists.has(roomId) && lists.size >= MAX_POLICY_LISTS) {
        throw new ProtocolError('M_TOO_LARGE', `This server enforces at most ${MAX_POLICY_LISTS} lists.`)
      }
      await db.tx((tx) => insertPolicyList(tx, { room_id: roomId, added_by: by, added_at: clock.now() }))
      await refresh()
      return viewOf(lists.get(roomId)!)
    },
    async remove(roomId) {
      if (!(await db.tx((tx) => deletePolicyList(tx, roomId)))) {
        throw new ProtocolError('M_NOT_FOUND', 'This room is no policy list of this server.')
      }
      await refresh()
    },
  }
}
