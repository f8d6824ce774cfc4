import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import { type BanRule, type Bans, compileBans, POLICY_TYPES } from '../../core/event/policy-rules.ts'
import type { RoomId, ServerName, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { listAdministrators } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import {
  deletePolicyList,
  insertPolicyList,
  listPolicyLists,
  type PolicyListRow,
} from '../../store/rooms/policy-lists.ts'
import type { Clock } from '../clock.ts'
import { MAX_POLICY_LISTS, POLICY_GLOB_BOUNDS, POLICY_LIST_PAUSE_MS } from '../limits/moderation.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { SearchSignals } from '../search/search-signals.ts'
import { createListReader, type ReadList } from './list-reader.ts'

/**
 * Rooms whose rules this server enforces (client-server API, "Moderation policy lists"). A list with rules that ban everybody, or this
 * server, is held: none of its rules counts until these are gone. When nobody of this server is in the room any more, the rules that it had
 * then stay in force.
 */
export interface PolicyLists {
  /** The rules in force; undefined, at no cost, while there is none. */
  bans(): Bans | undefined
  /** The globs of servers that the rules in force ban, as a server ACL has them: without those that name a port. */
  bannedServers(): readonly string[]
  /** What is known of a room as a list, whether it is followed or not. */
  look(roomId: RoomId): Promise<ReadList>
  /** Whether the rules of all lists are known, none is held and none is left out. */
  areAllInForce(): boolean
  /** Calls the listener when other rules may be in force. */
  onChange(listener: () => void): void
  list(): Promise<JsonObject[]>
  /** @throws ProtocolError `M_NOT_FOUND` for a room that nobody of this server is in, `M_TOO_LARGE` for too many lists */
  add(by: string, roomId: RoomId): Promise<JsonObject>
  /** @throws ProtocolError `M_NOT_FOUND` */
  remove(roomId: RoomId): Promise<void>
}

/** A server has few. */
const ADMINISTRATORS_NAMED = 100
/** Lists are read for this share of the time at most. */
const REST_FOR_WORK = 19
const LONGEST_REST_MS = 60_000

export async function openPolicyLists(parts: {
  readonly serverName: ServerName
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly signals: Pick<SearchSignals, 'subscribe'>
}): Promise<PolicyLists> {
  const { serverName, db, clock, log, registry } = parts
  /** Looked up once for all lists that are read in one go. */
  let administrators: Promise<readonly UserId[]> | undefined
  const reader = createListReader({
    serverName,
    registry,
    administrators() {
      administrators ??= listAdministrators({ query: db.scan }, ADMINISTRATORS_NAMED)
      return administrators
    },
  })
  let lists: ReadonlyMap<RoomId, PolicyListRow & ReadList> = new Map()
  let roomIds: ReadonlyMap<number, RoomId> = new Map()
  let inForce: Bans | undefined
  let servers: readonly string[] = []
  let reading: Promise<void> | undefined
  /** Whether they are to be read. */
  let isStale = false
  const listeners: (() => void)[] = []

  async function readAll(): Promise<void> {
    const read = new Map<RoomId, PolicyListRow & ReadList>()
    administrators = undefined
    for (const row of await listPolicyLists(db)) {
      const list = await reader.read(row.room_id)
      read.set(row.room_id, { ...row, ...list })
    }
    warnOfNew(log, lists, read)
    lists = read
    roomIds = new Map([...read].flatMap(([id, { roomNid }]) => (roomNid === undefined ? [] : [[roomNid, id]])))
    const rules = [...read.values()].flatMap((list) => (list.state === 'in force' ? list.rules : []))
    servers = serversOf(rules)
    const before = inForce?.left ?? 0
    inForce = rules.length === 0 ? undefined : compileBans(rules, POLICY_GLOB_BOUNDS)
    const left = inForce?.left ?? 0
    if (left > before) log.warn({ left }, 'policy lists have more rules with wildcards than can be enforced')
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

  async function readChanged(): Promise<void> {
    await refresh()
    for (const listener of listeners) listener()
  }

  const refreshLater = inTurn(readChanged, log)
  const concerns = ({ type, roomNid }: RoomEvent) => roomIds.has(roomNid) && POLICY_TYPES.has(type)

  parts.signals.subscribe({
    committed(fresh, redacted) {
      if (roomIds.size === 0) return
      const ended = redacted.filter(concerns)
      for (const { roomNid } of ended) reader.forget(roomIds.get(roomNid))
      if (ended.length > 0 || fresh.some(concerns)) refreshLater()
    },
    missed() {
      reader.forget()
      if (roomIds.size > 0) refreshLater()
    },
  })
  await refresh()

  return {
    bans: () => inForce,
    bannedServers: () => servers,
    async look(roomId) {
      const read = await reader.read(roomId)
      // Of a room that is no list, nobody would notice that a rule is redacted.
      if (!lists.has(roomId)) reader.forget(roomId)
      return read
    },
    areAllInForce: () => !inForce?.left && [...lists.values()].every(({ state }) => state === 'in force'),
    onChange: (listener) => void listeners.push(listener),
    async list() {
      await refresh()
      return [...lists.values()].map(viewOf)
    },
    async add(by, roomId) {
      const room = await registry.get(roomId)
      if (!room || room.localMembers.size === 0) {
        throw new ProtocolError('M_NOT_FOUND', 'Nobody of this server is in that room: join it first.')
      }
      if (!lists.has(roomId) && lists.size >= MAX_POLICY_LISTS) {
        throw new ProtocolError('M_TOO_LARGE', `This server enforces at most ${MAX_POLICY_LISTS} lists.`)
      }
      await db.tx((tx) => insertPolicyList(tx, { room_id: roomId, added_by: by, added_at: clock.now() }))
      await readChanged()
      return viewOf(lists.get(roomId)!)
    },
    async remove(roomId) {
      if (!(await db.tx((tx) => deletePolicyList(tx, roomId)))) {
        throw new ProtocolError('M_NOT_FOUND', 'This room is no policy list of this server.')
      }
      reader.forget(roomId)
      await readChanged()
    },
  }
}

/** What rules ban of servers, each once. A server ACL knows no ports. */
export function serversOf(rules: readonly BanRule[]): string[] {
  const globs = rules.flatMap(({ entity, glob }) => (entity === 'server' ? [glob.toLowerCase()] : []))
  return [...new Set(globs)].filter((glob) => !/[^:]:[0-9]*$/.test(glob))
}

/** Reads lists at once, and after that not again before a pause: whoever writes a list must not keep this server busy. */
function inTurn(read: () => Promise<void>, log: Logger): () => void {
  let isDue = false
  let isPausing = false

  async function run(): Promise<void> {
    while (isDue) {
      isDue = false
      const begun = performance.now()
      await read().catch((err) =>
        log.warn({ err }, 'policy lists could not be read; the rules of before stay in force'),
      )
      const rest = Math.max(POLICY_LIST_PAUSE_MS, REST_FOR_WORK * (performance.now() - begun))
      await pause(Math.min(rest, LONGEST_REST_MS), undefined, { ref: false })
    }
    isPausing = false
  }

  return () => {
    isDue = true
    if (isPausing) return
    isPausing = true
    void run()
  }
}

/** Tells of warnings that lists did not have before. */
function warnOfNew(log: Logger, before: ReadonlyMap<RoomId, ReadList>, now: ReadonlyMap<RoomId, ReadList>): void {
  for (const [room, { warning }] of now) {
    if (warning === undefined || before.get(room)?.warning === warning) continue
    log.warn({ room, warning }, 'a policy list is not enforced as it should be')
  }
}

const viewOf = ({ room_id, added_by, added_at, state, rules, warning }: PolicyListRow & ReadList): JsonObject => ({
  room_id,
  added_by,
  added_ts: added_at,
  state,
  rules: rules.length,
  ...(warning !== undefined && { warning }),
})
