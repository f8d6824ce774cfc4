import type { Json } from '../../../support/api.ts'
import type { RoomNews } from './asking.ts'

/** What a client knows of a room by the answers of one chain. */
export class KnownRoom {
  /** Stretches of the timeline without a gap inside, oldest first, as event ids. */
  stretches: string[][] = []
  /** Whether events are missing behind the last stretch. */
  hasGapAtEnd = false
  /** Event ids by type and key. */
  readonly state = new Map<string, string>()
  /** Members that may be out of date since a gap, so that a client asks for them anew. */
  readonly flushed = new Set<string>()
  readonly counts = new Map<string, number>()
  name: string | undefined
  stripped: readonly Json[] | undefined

  knows(eventId: string): boolean {
    return this.stretches.some((stretch) => stretch.includes(eventId))
  }

  /** @throws Error when an event comes twice, or the answer contradicts itself */
  apply(news: RoomNews): void {
    if (news.stripped !== undefined) {
      if (news.timeline.length + news.state.length > 0) throw new Error('an invitation tells more than it may')
      this.stripped = news.stripped
      return
    }
    this.stripped = undefined
    if (news.isInitial) {
      this.stretches = []
      this.hasGapAtEnd = false
      this.state.clear()
      this.flushed.clear()
    }
    if (news.isLimited && !news.isExpanded) this.#flushMembers()
    this.#addTimeline(news)
    for (const { type, state_key: key, event_id: id } of news.state) {
      if (id === undefined) this.state.delete(`${type}|${key}`)
      else this.state.set(`${type}|${key}`, id)
      if (type === 'm.room.member') this.flushed.delete(key)
    }
    for (const field of ['joined_count', 'invited_count', 'notification_count', 'highlight_count', 'bump_stamp']) {
      if (news.raw[field] !== undefined) this.counts.set(field, news.raw[field])
    }
    if (news.raw.name !== undefined) this.name = news.raw.name ?? undefined
  }

  #flushMembers(): void {
    for (const key of this.state.keys()) {
      const [type, user] = key.split('|') as [string, string]
      if (type === 'm.room.member') this.flushed.add(user)
    }
  }

  #addTimeline({ timeline, isExpanded, isLimited }: RoomNews): void {
    const ids = timeline.map(({ event_id: id }) => id as string)
    if (new Set(ids).size !== ids.length) throw new Error(`an event comes twice in one answer: ${ids}`)
    const last = this.stretches.at(-1)
    if (isExpanded && last !== undefined) this.#expand(last, ids, isLimited)
    else this.#append(last, ids, isLimited)
  }

  #append(last: string[] | undefined, ids: string[], isLimited: boolean): void {
    const again = ids.filter((id) => this.knows(id))
    if (again.length > 0) throw new Error(`came before: ${again}`)
    if (isLimited) this.hasGapAtEnd = true
    if (ids.length === 0) return
    if (last === undefined || this.hasGapAtEnd) this.stretches.push(ids)
    else last.push(...ids)
    this.hasGapAtEnd = false
  }

  /** What comes are the newest events, known ones among them. */
  #expand(last: string[], ids: string[], isLimited: boolean): void {
    const [first] = ids
    if (first === undefined) return
    const at = last.indexOf(first)
    const overlaps = ids.some((id) => last.includes(id))
    if (!overlaps && !isLimited) throw new Error('an expanded timeline has a gap before it, and does not say so')
    if (!overlaps) this.stretches.push(ids)
    else if (at >= 0) last.splice(at, last.length, ...ids)
    else {
      // It may reach back over gaps.
      const reached = this.stretches.findIndex((stretch) => stretch.some((id) => ids.includes(id)))
      const from = this.stretches[reached]!.indexOf(first)
      const before = from > 0 ? this.stretches[reached]!.slice(0, from) : []
      this.stretches.splice(reached, this.stretches.length, [...before, ...ids])
    }
    this.hasGapAtEnd = false
  }
}
