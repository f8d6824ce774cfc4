import { type BanRule, compileBans, overreachingRule, POLICY_TYPES, readBan } from '../../core/event/policy-rules.ts'
import type { RoomId, ServerName, UserId } from '../../core/ids.ts'
import { getState } from '../../core/state/trie.ts'
import { MAX_RULES_PER_LIST, POLICY_GLOB_BOUNDS } from '../limits/moderation.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'

/** What is known of a policy list. */
export interface ReadList {
  readonly state: 'in force' | 'held' | 'unknown'
  readonly rules: readonly BanRule[]
  readonly warning: string | undefined
  readonly roomNid: number | undefined
}

/** Reads policy lists. It remembers rules, so that a change of a list costs what has changed. */
export interface ListReader {
  read(roomId: RoomId): Promise<ReadList>
  /** The content of rules has changed, by redactions or unseen. */
  forget(roomId?: RoomId): void
}

/** Rules by the numbers of their events. Undefined for what is no ban. */
type KnownRules = ReadonlyMap<number, BanRule | undefined>

const NOBODY_KNOWS = 'This server knows nothing of the room: join it.'
const LEFT = 'Nobody of this server is in the room any more: its rules are those of then.'
/** Rules that are read in one go. */
const RULES_AT_ONCE = 1_000

export function createListReader(parts: {
  readonly serverName: ServerName
  readonly registry: Pick<RoomRegistry, 'get'>
  administrators(): Promise<readonly UserId[]>
}): ListReader {
  const known = new Map<RoomId, KnownRules>()
  let forgotten = 0

  /** The rules of a room, the newest first. */
  async function rulesOf(room: Room, before: KnownRules | undefined): Promise<[KnownRules, boolean]> {
    const { committed, keys } = room
    const nids = [...POLICY_TYPES.keys()]
      .flatMap((type) => [...keys.ofType(type)].map(([, keyId]) => getState(committed.state, keyId)))
      .filter((nid) => nid !== 0)
      .sort((a, b) => b - a)
    const chosen = nids.slice(0, MAX_RULES_PER_LIST)
    const rules = new Map<number, BanRule | undefined>(chosen.map((nid) => [nid, before?.get(nid)]))
    const fresh = chosen.filter((nid) => before?.has(nid) !== true)
    for (let from = 0; from < fresh.length; from += RULES_AT_ONCE) {
      const found = await room.events(fresh.slice(from, from + RULES_AT_ONCE))
      for (const [nid, { type, pdu }] of found) rules.set(nid, readBan(type, pdu.content))
    }
    return [rules, nids.length > chosen.length]
  }

  /** A rule against an administrator of this server has no effect on them, and its writers may be worth a look. */
  async function vainRule(rules: readonly BanRule[]): Promise<string | undefined> {
    if (rules.length === 0) return undefined
    const bans = compileBans(rules, POLICY_GLOB_BOUNDS)
    for (const administrator of await parts.administrators()) {
      const rule = bans.of('user', administrator)
      if (rule)
        return `Its rule "${rule.glob}" bans ${administrator}, an administrator of this server, whom no list concerns.`
    }
    return undefined
  }

  return {
    async read(roomId) {
      const room = await parts.registry.get(roomId)
      if (!room || room.stateNid(room.committed.state, 'm.room.create', '') === 0) {
        return { state: 'unknown', rules: [], warning: NOBODY_KNOWS, roomNid: room?.nid }
      }
      const begun = forgotten
      const [all, isCut] = await rulesOf(room, known.get(roomId))
      // Nothing is remembered that may have changed meanwhile: who caused that reads the list again.
      if (begun === forgotten) known.set(roomId, all)
      const rules = [...all.values()].filter((rule) => rule !== undefined)
      const wide = overreachingRule(rules, parts.serverName, POLICY_GLOB_BOUNDS.globs)
      if (wide) {
        const warning = `Its rule "${wide.glob}" bans everybody, or this server, alone or with other rules: none is enforced until it is gone.`
        return { state: 'held', rules, warning, roomNid: room.nid }
      }
      const cut = isCut ? `It has more than ${MAX_RULES_PER_LIST} rules, of which the newest are enforced.` : undefined
      const warning = room.localMembers.size === 0 ? LEFT : (cut ?? (await vainRule(rules)))
      return { state: 'in force', rules, warning, roomNid: room.nid }
    },
    forget(roomId) {
      forgotten++
      if (roomId === undefined) known.clear()
      else known.delete(roomId)
    },
  }
}
