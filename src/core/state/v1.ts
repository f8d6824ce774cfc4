import { hash } from 'node:crypto'
import { authorise } from '../auth/rules.ts'
import type { Pdu } from '../event/format.ts'
import { compareIntegers } from '../large-integers.ts'
import type { RoomVersion } from '../room-version.ts'
import { type Disagreement, eventsAmong } from './differences.ts'
import { authKeysOf, LoadedEvents, type ResolutionSource, type StateEvent } from './source.ts'

/** A key with at least two events: sorted by ascending depth, then by descending SHA-1 of the id. */
interface Conflict {
  readonly key: number
  readonly candidates: readonly [StateEvent, ...StateEvent[]]
}

/** Whether the rules allow an event in *R*, with `inPlace` set under the same key. */
type Judge = (event: StateEvent, inPlace?: StateEvent) => boolean

interface Pass {
  readonly covers: (pdu: Pdu) => boolean
  readonly settle: (conflict: Conflict, isAllowed: Judge) => StateEvent
}

/** The conflicts of one pass are resolved independently, with the results of earlier passes. */
const PASSES: readonly Pass[] = [
  { covers: ({ type, state_key }) => type === 'm.room.power_levels' && state_key === '', settle: lastOfRow },
  { covers: ({ type }) => type === 'm.room.join_rules', settle: lastOfRow },
  { covers: ({ type }) => type === 'm.room.member', settle: lastOfRow },
  { covers: () => true, settle: deepestAllowed },
]

/** State resolution of room version 1. *R* is the state resolved so far. */
export async function resolveByDepth(
  version: RoomVersion,
  disagreement: Disagreement,
  source: ResolutionSource,
): Promise<ReadonlyMap<number, number>> {
  const { resolved, conflicting } = separate(disagreement)
  const currentOf = (key: number) => resolved.get(key) ?? disagreement.agreedOn(key)
  const events = new LoadedEvents(source)
  const nids = [...conflicting.values()].flat()
  await events.load(nids)
  const authKeys = new Set(nids.flatMap((nid) => authKeysOf(version, source, events.get(nid).pdu)))
  await events.load([...authKeys].map(currentOf).filter((nid) => nid !== 0))

  const judgeOf =
    (conflict: Conflict): Judge =>
    (event, inPlace) =>
      authorise(version, event.pdu, (type, stateKey) => {
        const key = source.keyOf(type, stateKey)
        if (key === conflict.key) return inPlace?.pdu
        const nid = key === undefined ? 0 : currentOf(key)
        return events.has(nid) ? events.get(nid).pdu : undefined
      }).allowed
  let pending = [...conflicting].map(([key, own]) => conflictOf(key, own, events))
  for (const { covers, settle } of PASSES) {
    const settled = pending.filter(({ candidates: [first] }) => covers(first.pdu))
    pending = pending.filter((conflict) => !settled.includes(conflict))
    const winners = settled.map((conflict) => settle(conflict, judgeOf(conflict)))
    for (const [index, { key }] of settled.entries()) resolved.set(key, winners[index]!.nid)
  }
  return resolved
}

/** *R* starts as the union of the states without the conflicts. A key that only some states have is no conflict if they agree. */
function separate({ differences }: Disagreement) {
  const resolved = new Map<number, number>()
  const conflicting = new Map<number, number[]>()
  for (const [key, values] of differences) {
    const nids = eventsAmong(values)
    if (nids.length > 1) conflicting.set(key, nids)
    else if (nids[0] !== undefined) resolved.set(key, nids[0])
  }
  return { resolved, conflicting }
}

function conflictOf(key: number, nids: readonly number[], events: LoadedEvents): Conflict {
  const ranked = nids.map((nid) => {
    const event = events.get(nid)
    return { event, depth: event.pdu.depth, digest: hash('sha1', event.id) }
  })
  ranked.sort((a, b) => compareIntegers(a.depth, b.depth) || (a.digest < b.digest ? 1 : -1))
  const [first, ...rest] = ranked.map(({ event }) => event)
  return { key, candidates: [first!, ...rest] }
}

/** For power levels, join rules and members: starts with the first event; each next allowed event replaces it, until one is not allowed. */
function lastOfRow({ candidates: [first, ...rest] }: Conflict, isAllowed: Judge): StateEvent {
  let standing = first
  for (const next of rest) {
    if (!isAllowed(next, standing)) break
    standing = next
  }
  return standing
}

/** For all others: the allowed event of highest depth and lowest SHA-1. If none is allowed, the network uses the last one that it tried. */
function deepestAllowed({ candidates }: Conflict, isAllowed: Judge): StateEvent {
  return candidates.findLast((candidate) => isAllowed(candidate)) ?? candidates[0]
}
