import type { Dice } from '../../../federation/dice.ts'
import type { Person } from '../../../rooms/people.ts'
import { type Json, syncPath } from '../../../support/api.ts'
import { checkState, checkTimeline, type Wanted } from './checks.ts'
import { KnownRoom } from './known-room.ts'
import type { createTruth } from './truth.ts'
import type { World } from './world.ts'

const ALL_STATE: Wanted['state'] = [['*', '*']]

/** The chain of tokens of a client that syncs in the classic way, held against the same truth. */
export class ClassicChain {
  readonly #person: Person
  readonly #world: World
  readonly #truthOf: ReturnType<typeof createTruth>
  readonly #dice: Dice
  readonly #rooms = new Map<string, KnownRoom>()
  /** Whether the state comes as it is after the timeline. */
  readonly #isStateAfter: boolean
  #since: string | undefined

  constructor(parts: { person: Person; world: World; truthOf: ReturnType<typeof createTruth>; dice: Dice }) {
    this.#person = parts.person
    this.#world = parts.world
    this.#truthOf = parts.truthOf
    this.#dice = parts.dice
    this.#isStateAfter = parts.dice.chance(0.5)
  }

  get userId(): string {
    return this.#person.userId
  }

  /** @throws Error when anything is not as it should be */
  async turn(isLost: boolean): Promise<void> {
    const limit = this.#dice.pick([1, 3, 20])
    const filter = { room: { timeline: { limit } } }
    const path = syncPath({ filter, ...(this.#since !== undefined && { since: this.#since }) })
    const answer = await this.#person.call('GET', `${path}${this.#isStateAfter ? '&use_state_after=true' : ''}`)
    if (isLost) return
    this.#since = answer.next_batch
    const problems: string[] = []
    for (const [id, section] of Object.entries<Json>(answer.rooms?.join ?? {})) {
      problems.push(...this.#apply(id, section).map((problem) => `${id}: ${problem}`))
    }
    const { userId } = this.#person
    for (const room of this.#world.rooms.values()) {
      if (room.standings.get(userId)?.membership !== 'join') {
        this.#rooms.delete(room.id)
        continue
      }
      const known = this.#rooms.get(room.id) ?? new KnownRoom()
      const truth = await this.#truthOf(this.#person, room)
      // A state event among hidden ones is in neither the state before the timeline nor the timeline.
      const state = this.#isStateAfter || !room.hidesHistory ? ALL_STATE : []
      const found = [...checkTimeline(known, truth, 1), ...checkState(known, truth, { limit: 1, isLazy: false, state })]
      problems.push(...found.map((problem) => `${room.id}: ${problem}`))
    }
    if (problems.length > 0) {
      throw new Error(`classic sync of ${userId}:\n${problems.join('\n')}\nanswer: ${JSON.stringify(answer)}`)
    }
  }

  #apply(id: string, { timeline, state, state_after: stateAfter }: Json): string[] {
    const known = this.#rooms.get(id) ?? new KnownRoom()
    const isInitial = !this.#rooms.has(id)
    this.#rooms.set(id, known)
    const events: Json[] = timeline?.events ?? []
    const inTimeline = events.filter(({ state_key: key }) => key !== undefined)
    const changes = this.#isStateAfter ? stateAfter.events : [...(state?.events ?? []), ...inTimeline]
    const raw = {}
    const flags = { isInitial, isExpanded: false, isLimited: timeline?.limited === true, stripped: undefined }
    try {
      known.apply({ ...flags, timeline: events, state: changes, raw })
      return []
    } catch (error) {
      return [(error as Error).message]
    }
  }

  /** Unread counts by room, as a new client gets them. */
  async unread(): Promise<Map<string, Json>> {
    const { rooms } = await this.#person.call('GET', syncPath({ filter: { room: { timeline: { limit: 1 } } } }))
    return new Map(
      Object.entries<Json>(rooms?.join ?? {}).map(([id, { unread_notifications }]) => [id, unread_notifications]),
    )
  }
}
