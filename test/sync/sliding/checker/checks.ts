import type { RoomNews, Wish } from './asking.ts'
import type { KnownRoom } from './known-room.ts'
import type { Truth } from './truth.ts'

/** What several wishes for a room ask for together. */
export interface Wanted {
  readonly limit: number
  readonly isLazy: boolean
  readonly state: Wish['state']
}

export function together(wishes: readonly Wish[]): Wanted {
  const state = wishes.flatMap((wish) => wish.state)
  const wantsAllMembers = state.some(([type, key]) => (type === '*' || type === 'm.room.member') && key === '*')
  const isLazy = wishes.some((wish) => wish.isLazy) && !wantsAllMembers
  return { limit: Math.max(...wishes.map(({ limit }) => limit)), isLazy, state }
}

const isWanted = ({ state }: Wanted, name: string) => {
  const [type, key] = name.split('|')
  return state.some(([wanted, at]) => (wanted === '*' || wanted === type) && (at === '*' || at === key))
}

/** Whether some ids stand in others next to each other and in order. */
function isStretchOf(stretch: readonly string[], ids: readonly string[]): boolean {
  const at = ids.indexOf(stretch[0]!)
  return at >= 0 && stretch.every((id, index) => ids[at + index] === id)
}

/**
 * The timeline of a room that is in a window: right, without a gap that was not received, and as long as was wished for.
 *
 * @param limit events that were wished for; 1 where hidden ones may end it early
 */
export function checkTimeline(known: KnownRoom, { ids }: Truth, limit: number): string[] {
  const problems: string[] = []
  for (const stretch of known.stretches) {
    if (!isStretchOf(stretch, ids)) problems.push(`events ${stretch} are no stretch of ${ids}`)
  }
  const places = known.stretches.map(([first]) => ids.indexOf(first!))
  if (places.some((place, index) => index > 0 && place <= places[index - 1]!))
    problems.push('stretches are out of order')
  const last = known.stretches.at(-1) ?? []
  if (known.hasGapAtEnd || last.length === 0) {
    if (limit > 0 && ids.length > 0) problems.push(`the newest events are missing: ${ids.slice(-limit)}`)
    return problems
  }
  if (last.at(-1) !== ids.at(-1)) problems.push(`the timeline ends with ${last.at(-1)}, not ${ids.at(-1)}`)
  const least = Math.min(limit, ids.length)
  if (last.length < least) problems.push(`it has ${last.length} events of ${ids.length}, wanted are ${limit}`)
  return problems
}

/** The state of a room that is in a window: all that is wanted, and nothing that is out of date. */
export function checkState(known: KnownRoom, truth: Truth, wanted: Wanted): string[] {
  const problems: string[] = []
  for (const [name, id] of truth.state) {
    if (isWanted(wanted, name) && known.state.get(name) !== id) {
      problems.push(`state ${name} is ${known.state.get(name)}, should be ${id}`)
    }
  }
  for (const [name, id] of known.state) {
    const [type, user] = name.split('|') as [string, string]
    const isLazyMember = wanted.isLazy && type === 'm.room.member' && !known.flushed.has(user)
    if ((isWanted(wanted, name) || isLazyMember) && truth.state.get(name) !== id) {
      problems.push(`state ${name} is ${id}, should be ${truth.state.get(name)}`)
    }
  }
  return problems
}

/** With lazily loaded members: those who sent, and those whose membership changed, are known. */
export function checkLazyMembers(known: KnownRoom, { timeline }: RoomNews, { isLazy }: Wanted): string[] {
  if (!isLazy) return []
  const named = timeline.flatMap((event) =>
    event.type === 'm.room.member' ? [event.sender, event.state_key] : event.sender,
  )
  return [...new Set<string>(named)]
    .filter((user) => !known.state.has(`m.room.member|${user}`))
    .map((user) => `the member ${user} of the timeline is not known`)
}

/** What a list shows of a room. */
export function checkSummary(known: KnownRoom, truth: Truth): string[] {
  const received = `${known.counts.get('joined_count')} joined, ${known.counts.get('invited_count') ?? 0} invited`
  const right = `${truth.joined} joined, ${truth.invited} invited`
  return [...(received === right ? [] : [`${received}; should be ${right}`]), ...checkName(known, truth)]
}

export const checkName = (known: KnownRoom, { name }: Truth): string[] =>
  name === undefined || known.name === name ? [] : [`name ${known.name}, not ${name}`]
