import type { ByteBudget } from '../../core/byte-budget.ts'
import { type CompiledRules, DEFAULT_PUSH_RULES, withoutSenders } from '../../core/push/compiled-rules.ts'
import type { PushOutcome, PushRuleset } from '../../core/push/default-rules.ts'
import { NO_OWN_RULES, type OwnRules, rulesetOf } from '../../core/push/own-rules.ts'
import { PushedEvent } from '../../core/push/pushed-event.ts'
import { findPushRules, listPushRuleChanges } from '../../store/accounts/push-rules.ts'
import type { Reader } from '../../store/db/db.ts'
import type { IgnoredUsers } from '../rooms/read/ignored-users.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { type OutcomeForAll, outcomesOf, type PushedUser } from './outcomes-of.ts'
import { powersIn } from './push-context.ts'
import { createRuleNews } from './rule-news.ts'
import { createSharing, type SharedRules } from './shared-rules.ts'
import type { ThreadFollowers } from './thread-followers.ts'

/**
 * The push rules of local users, to evaluate events by.
 *
 * To evaluate one event for many users, call {@link PushRules.outcomes} once: it reads the room's power levels once, derives what rules
 * need of the event once, and loads missing rules in one query.
 */
export interface PushRules {
  /** A user's compiled rules. Synchronous for users who have changed none, and for those whose rules are in memory. */
  of(userNid: number): CompiledRules | Promise<CompiledRules>
  /** The compiled rules, if no query is needed for them. */
  peek(userNid: number): CompiledRules | undefined
  /** Reads the rules of users into memory, in one query. */
  load(userNids: readonly number[]): Promise<void>
  /** Whether a user may have rules of their own: has changed any, or ignores anybody. */
  hasOwn(userNid: number): boolean
  /** The result of a user's rules for a committed event of a room, in the room's current state. A silent result if it is their own. */
  evaluate(user: PushedUser, room: Room, event: RoomEvent): Promise<PushOutcome>
  /** The same for several users, and for all who have changed no rules. */
  outcomes(users: readonly PushedUser[], room: Room, event: RoomEvent): Promise<PushOutcomes>
  /** What a user changed about the rules. */
  stored(userNid: number): Promise<OwnRules>
  /** The rules as clients read them. */
  ruleset(user: PushedUser): Promise<PushRuleset>
  /** The ledger position of the last change; 0 for users who have changed none. */
  changedAt(userNid: number): number
  /** Counts changes of rules. What was derived from rules is valid while it stands. */
  version(): number
  /** The users whose rules changed since a version; undefined if that is too long ago. */
  changedSince(version: number): readonly number[] | undefined
  /** A change was committed. */
  changed(userNid: number, rules: OwnRules, position: number): void
  /** Commits were missed: who changed rules is read again. */
  readAgain(): Promise<void>
}

/** The rules as a node that stands by reads them: each time. */
export function lookUpRulesets({ db }: { readonly db: Reader }): Pick<PushRules, 'ruleset'> {
  return {
    async ruleset({ userNid, userId }) {
      const [row] = await findPushRules(db, [userNid])
      return rulesetOf(row === undefined ? NO_OWN_RULES : (JSON.parse(row.rules) as OwnRules), userId)
    },
  }
}

export type { PushedUser } from './outcomes-of.ts'

/** What an event is to users. */
export interface PushOutcomes {
  /** In the order of the users. */
  readonly list: readonly PushOutcome[]
  /** For those who have changed no rules and ignore nobody; to the sender it is nothing all the same. */
  readonly default: OutcomeForAll
  of(user: PushedUser): PushOutcome
}

interface Held {
  readonly shared: SharedRules
  readonly compiled: CompiledRules
  readonly bytes: number
}

/** Bytes of compiled rules beside their text, and for each byte of text. Measured: a test compares them with the heap. */
const RULES_BYTES = 2_000
const BYTES_PER_CHARACTER = 12

export async function openPushRules({
  db,
  budget,
  ignoredUsers,
  threadFollowers,
}: {
  readonly db: Reader
  readonly budget: ByteBudget
  readonly ignoredUsers: Pick<IgnoredUsers, 'of' | 'ignores' | 'onChange'>
  readonly threadFollowers: Pick<ThreadFollowers, 'threadOf'>
}): Promise<PushRules> {
  const sharing = createSharing()
  const held = budget.part<number, Held>({
    bytesOf: ({ bytes }) => bytes,
    gone: ({ shared }) => sharing.release(shared),
  })
  const changes = new Map((await listPushRuleChanges(db)).map(({ user_nid, position }) => [user_nid, position]))
  const news = createRuleNews()
  const hasOwn = (userNid: number) => changes.has(userNid) || ignoredUsers.ignores(userNid)
  ignoredUsers.onChange((userNid) => {
    news.add(userNid)
    held.delete(userNid)
  })

  function hold(userNid: number, text: string | undefined, ignored?: ReadonlySet<string>): Held {
    const shared = text === undefined ? sharing.none : sharing.take(text)
    const entry = {
      shared,
      compiled: ignored ? withoutSenders(shared.compiled, ignored) : shared.compiled,
      bytes: RULES_BYTES + BYTES_PER_CHARACTER * shared.text.length,
    }
    held.delete(userNid)
    held.set(userNid, entry)
    return entry
  }

  async function read(userNids: readonly number[]): Promise<Map<number, Held>> {
    const before = news.version()
    const [rows, lists] = await Promise.all([
      findPushRules(db, userNids),
      Promise.all(userNids.map((userNid) => ignoredUsers.of(userNid))),
    ])
    // A change was committed meanwhile: what was read may be older.
    if (before !== news.version()) return read(userNids)
    const own = new Map(rows.map(({ user_nid, rules }) => [user_nid, rules]))
    const found = new Map<number, Held>()
    userNids.forEach((userNid, place) => {
      const [rules, ignored] = [own.get(userNid), lists[place]]
      if (rules === undefined && ignored === undefined) return
      found.set(userNid, hold(userNid, rules, ignored))
    })
    return found
  }

  async function heldOf(userNid: number): Promise<Held | undefined> {
    if (!hasOwn(userNid)) return undefined
    return held.get(userNid) ?? (await read([userNid])).get(userNid)
  }

  const peek: PushRules['peek'] = (userNid) => (hasOwn(userNid) ? held.get(userNid)?.compiled : DEFAULT_PUSH_RULES)

  const outcomes: PushRules['outcomes'] = async (users, room, { id, pdu, isState, content }) => {
    const version = news.version()
    const known = users.map(({ userNid }) => peek(userNid))
    const missing: number[] = []
    for (const [place, rules] of known.entries()) if (rules === undefined) missing.push(users[place]!.userNid)
    const [loaded, powers, thread] = await Promise.all([
      missing.length > 0 ? read(missing) : new Map<number, Held>(),
      powersIn(room, pdu.sender),
      threadFollowers.threadOf(room, { isState, content }),
    ])
    // Those that were known may have left memory for those that were read.
    const isKnown = version === news.version()
    const rulesOf = ({ userNid }: PushedUser) => loaded.get(userNid)?.compiled ?? peek(userNid) ?? DEFAULT_PUSH_RULES
    const event = new PushedEvent(pdu, { roomId: room.id, eventId: id })
    const facts = { memberCount: room.counts.join, ...powers }
    const nobody = { userId: '', displayName: undefined, follows: thread && false, ...facts }
    const outcomes = outcomesOf(event, nobody, (userNid) => ({
      displayName: room.localMembers.get(userNid)?.displayName,
      follows: thread?.followers.has(userNid),
    }))
    return {
      list: users.map((user, place) => outcomes.of((isKnown ? known[place] : undefined) ?? rulesOf(user), user)),
      default: outcomes.forAll(DEFAULT_PUSH_RULES),
      of: (user) => outcomes.of(rulesOf(user), user),
    }
  }

  return {
    peek,
    outcomes,
    of: (userNid) => peek(userNid) ?? heldOf(userNid).then((entry) => entry?.compiled ?? DEFAULT_PUSH_RULES),
    async load(userNids) {
      await read(userNids)
    },
    hasOwn,
    async evaluate(user, room, event) {
      return (await outcomes([user], room, event)).list[0]!
    },
    stored: async (userNid) => (await heldOf(userNid))?.shared.stored ?? NO_OWN_RULES,
    ruleset: async ({ userNid, userId }) => rulesetOf((await heldOf(userNid))?.shared.stored ?? NO_OWN_RULES, userId),
    changedAt: (userNid) => changes.get(userNid) ?? 0,
    version: news.version,
    changedSince: news.since,
    changed(userNid, rules, position) {
      news.add(userNid)
      changes.set(userNid, position)
      // Whom the user ignores is read with the rules.
      if (ignoredUsers.ignores(userNid)) held.delete(userNid)
      else hold(userNid, JSON.stringify(rules))
    },
    async readAgain() {
      news.missed()
      held.clear()
      sharing.clear()
      for (const { user_nid, position } of await listPushRuleChanges(db)) changes.set(user_nid, position)
      news.missed()
    },
  }
}
