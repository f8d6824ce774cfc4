import type { StateLookup } from '../../../core/auth/context.ts'
import { authorise } from '../../../core/auth/rules.ts'
import { authEventKeys, type StateKeyPair } from '../../../core/auth/select.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { Branches } from '../room/branches.ts'
import { authoriseByCited, BY_CURRENT_STATE, reasonOf } from '../room/event-references.ts'
import type { Head } from '../room/head.ts'
import type { Room } from '../room/room.ts'
import type { Case, Exclusion } from './placing-case.ts'

/** State that every check needs, as do the effects of an event on others. */
export const ALWAYS_LOOKED_AT: readonly StateKeyPair[] = [
  ['m.room.create', ''],
  ['m.room.power_levels', ''],
]

/** Loads the state events for some keys. */
export async function stateLookup(room: Room, state: StateMap, keys: readonly StateKeyPair[]): Promise<StateLookup> {
  const nids = keys.map(([type, stateKey]) => room.stateNid(state, type, stateKey))
  const events = await room.events(nids)
  const found = new Map(keys.map((key, index) => [JSON.stringify(key), events.get(nids[index]!)?.authPdu]))
  return (...key) => found.get(JSON.stringify(key))
}

/** The checks that need more than the event, in the published order (server-server API, "Checks performed on receipt of a PDU", 4 to 7). */
export async function judge(
  branches: Branches,
  one: Case,
  before: StateMap,
  head: Head,
): Promise<Exclusion | undefined> {
  const exclusion = await judgeByRules(branches, one, before, head)
  if (exclusion || one.around.isOwnJoin || one.around.past) return exclusion
  const objection = await one.objection()
  return objection === undefined ? undefined : { standing: 'soft-failed', reason: objection }
}

async function judgeByRules(
  branches: Branches,
  { room, read: { pdu }, around }: Case,
  before: StateMap,
  head: Head,
): Promise<Exclusion | undefined> {
  const byCited = authoriseByCited(room, pdu, around.cited)
  if (!byCited.allowed) return { standing: 'rejected', reason: `by its auth events: ${reasonOf(byCited)}` }
  const keys = [...ALWAYS_LOOKED_AT, ...authEventKeys(room.version, pdu)]
  const byState = authorise(room.version, pdu, await stateLookup(room, before, keys))
  if (!byState.allowed) return { standing: 'rejected', reason: `by the state before it: ${reasonOf(byState)}` }
  if (around.isOwnJoin || around.past || before === head.state || head.extremities.length === 0) return undefined
  // With a gap before the event, our current state may be outdated: it must not exclude events because of what we missed.
  const isBehind = around.claimed !== undefined
  const current = isBehind ? await branches.resolve(room, [head.state, before]) : head.state
  const byCurrent = authorise(room.version, pdu, await stateLookup(room, current, keys))
  if (byCurrent.allowed) return undefined
  return { standing: 'soft-failed', reason: BY_CURRENT_STATE + reasonOf(byCurrent) }
}
