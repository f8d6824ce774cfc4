import { isDeepStrictEqual } from 'node:util'
import type { Dice } from '../../../federation/dice.ts'
import { inRoom, type Person } from '../../../rooms/people.ts'
import { type Api, ApiError, type Json } from '../../../support/api.ts'
import { type Ask, callOf, type Form, newsOf, type RoomNews, type Wish } from './asking.ts'
import {
  checkLazyMembers,
  checkName,
  checkState,
  checkSummary,
  checkTimeline,
  together,
  type Wanted,
} from './checks.ts'
import { createExtras, type Extras } from './extras.ts'
import { KnownRoom } from './known-room.ts'
import { shapeProblems } from './shape.ts'
import type { createTruth } from './truth.ts'
import type { World, WorldRoom } from './world.ts'

export interface ChainParts {
  readonly api: Api
  readonly person: Person
  readonly form: Form
  readonly connId: string
  readonly world: World
  readonly truthOf: ReturnType<typeof createTruth>
  readonly dice: Dice
  /** Whether the messages to the device come by this connection. */
  readonly hasToDevice: boolean
}

/** What happens to a request: answered, answered without reaching the client, or given up by the client while it waits. */
export type Fate = 'answered' | 'lost' | 'given up'

/** One connection of a client that remembers everything, and compares it with the truth after each answer. */
export class Chain {
  readonly #parts: ChainParts
  readonly #rooms = new Map<string, KnownRoom>()
  readonly #extras: Extras
  #pos: string | undefined
  #ask: Ask = { lists: {}, subscriptions: {} }
  /** What a room looked like when it was last found to be right. */
  readonly #checked = new Map<string, string>()
  #inScopeBefore: ReadonlySet<string> = new Set()
  /** Requests given up since the last answer, of which the server may hear later than of the next one. */
  #givenUp = 0

  constructor(parts: ChainParts) {
    this.#parts = parts
    this.#extras = createExtras(parts)
  }

  get name(): string {
    const { person, connId, form } = this.#parts
    return `${person.userId} ${connId} (${form})`
  }

  get userId(): string {
    return this.#parts.person.userId
  }

  get pos(): string | undefined {
    return this.#pos
  }

  want(ask: Ask): void {
    this.#ask = ask
  }

  /** Rooms that it was sent. */
  get sent(): ReadonlySet<string> {
    return new Set(this.#rooms.keys())
  }

  /** How many messages to the device are still to come. */
  outstanding(): number {
    return this.#extras.outstanding()
  }

  request(pos = this.#pos, timeout = 0) {
    const { form, connId } = this.#parts
    return callOf({ form, connId, pos, ask: this.#ask, extensions: this.#extras.request(), timeout, own: this.userId })
  }

  /** One request. Returns how many rooms came. @throws Error when anything is not as it should be */
  async turn(fate: Fate = 'answered'): Promise<number> {
    const { person } = this.#parts
    if (fate === 'given up') {
      await this.#giveUp()
      return 0
    }
    const { path, body } = this.request()
    const { status, body: answer } = await person.ask('POST', path, body)
    if (status !== 200) throw new ApiError('POST', path, status, answer)
    if (fate === 'lost') return 0
    // This request was ended for one that was given up before it: the client is where it was.
    if (answer.pos === this.#pos && this.#givenUp > 0) {
      this.#givenUp--
      return this.turn()
    }
    this.#givenUp = 0
    await this.#apply(answer)
    return Object.keys(answer.rooms ?? {}).length
  }

  /** Starts a request that may be held, and breaks the connection. */
  async #giveUp(): Promise<void> {
    const { api, person, dice } = this.#parts
    this.#givenUp++
    const { path, body } = this.request(this.#pos, 30_000)
    const signal = AbortSignal.timeout(1 + dice.below(10))
    await api.request('POST', path, { token: person.token, body, signal }).catch(() => {})
  }

  /** A position that this connection was never given is refused in the way that clients recover from. */
  async tryForeignPos(pos: string): Promise<void> {
    const { path, body } = this.request(pos)
    const { status, body: answer } = await this.#parts.person.ask('POST', path, body)
    if (status !== 400 || answer.errcode !== 'M_UNKNOWN_POS') {
      throw new Error(`pos ${pos} was answered with ${status} ${JSON.stringify(answer).slice(0, 200)}`)
    }
  }

  async #apply(answer: Json): Promise<void> {
    const { form } = this.#parts
    const problems = form === 'unstable' ? shapeProblems(answer) : []
    const scope = this.#scope(answer, problems)
    this.#pos = answer.pos
    const news = new Map<string, RoomNews>()
    for (const [id, raw] of Object.entries<Json>(answer.rooms ?? {})) {
      if (!this.#parts.world.rooms.has(id)) {
        problems.push(...this.#checkRemoval(id, raw))
        continue
      }
      if (!scope.has(id)) problems.push(`${id} was not asked for`)
      const received = newsOf(form, raw)
      news.set(id, received)
      const known = this.#rooms.get(id) ?? new KnownRoom()
      const isOutside = form === 'merged' && received.stripped !== undefined
      if (!this.#rooms.has(id) && !received.isInitial && !isOutside) problems.push(`${id} is new and not initial`)
      this.#rooms.set(id, known)
      try {
        known.apply(received)
      } catch (error) {
        problems.push(`${id}: ${(error as Error).message}`)
      }
      if (scope.get(id)?.wanted.isLazy === false) for (const key of known.state.keys()) this.#flush(known, key)
    }
    this.#extras.apply(answer.extensions ?? {}, news)
    for (const [id, { room, wanted }] of scope) {
      problems.push(...(await this.#check(room, wanted, news.get(id))).map((problem) => `${id}: ${problem}`))
    }
    const joined = [...scope.values()].map(({ room }) => room).filter((room) => this.#membership(room) === 'join')
    problems.push(
      ...this.#extras.check(
        [...scope.values()].map(({ room }) => room),
        joined,
        this.#rooms,
      ),
    )
    this.#inScopeBefore = new Set(scope.keys())
    if (problems.length > 0) {
      const received = [...news].map(([id, { raw }]) => `${id} ${JSON.stringify(outlineOf(raw))}`)
      throw new Error([this.name, ...problems, `asked: ${JSON.stringify(this.#ask)}`, ...received].join('\n'))
    }
  }

  /** The unread counts that it has are those that a new client of the classic sync gets. */
  checkUnread(unread: ReadonlyMap<string, Json>): void {
    if (this.#parts.form === 'merged') return
    for (const [id, { counts }] of this.#rooms) {
      const right = unread.get(id)
      if (right === undefined) continue
      const received = {
        notification_count: counts.get('notification_count'),
        highlight_count: counts.get('highlight_count'),
      }
      if (!isDeepStrictEqual(received, { ...right })) {
        throw new Error(`${this.name} has ${JSON.stringify(received)} of ${id}, should be ${JSON.stringify(right)}`)
      }
    }
  }

  /** Of a room that is gone from the server, a client that had it is told once that its user is out. */
  #checkRemoval(id: string, raw: Json): string[] {
    const own = raw.required_state?.find(({ state_key: key }: Json) => key === this.userId)
    const membership = this.#parts.form === 'merged' ? raw.membership : own?.content.membership
    const isRight = this.#rooms.delete(id) && membership === 'leave' && raw.timeline === undefined
    return isRight ? [] : [`${id} is gone, and ${JSON.stringify(raw)} came`]
  }

  #flush(known: KnownRoom, key: string): void {
    const [type, user] = key.split('|') as [string, string]
    if (type === 'm.room.member') known.flushed.add(user)
  }

  #membership(room: WorldRoom) {
    return room.standings.get(this.#parts.person.userId)?.membership
  }

  /** The rooms that the request shows, with what is wanted of each. */
  #scope(answer: Json, problems: string[]): Map<string, { room: WorldRoom; wanted: Wanted }> {
    const { world, person } = this.#parts
    const listed = world.listed(person.userId, this.sent)
    const direct = world.directRooms(person.userId)
    const wishes = new Map<WorldRoom, Wish[]>()
    const add = (room: WorldRoom, wish: Wish) => wishes.set(room, [...(wishes.get(room) ?? []), wish])
    for (const [name, list] of Object.entries(this.#ask.lists)) {
      const { isInvite, isDirect } = list.filter
      const passing = listed.filter(
        (room) =>
          (isInvite === undefined || isInvite === (this.#membership(room) === 'invite')) &&
          (isDirect === undefined || isDirect === direct.has(room.id)),
      )
      const { count } = answer.lists?.[name] ?? {}
      if (count !== passing.length) problems.push(`list ${name} has a count of ${count}, should be ${passing.length}`)
      for (const room of passing.slice(list.range[0], list.range[1] + 1)) add(room, list)
    }
    for (const [id, wish] of Object.entries(this.#ask.subscriptions)) {
      const room = world.rooms.get(id)
      const standing = room?.standings.get(person.userId)
      // Rooms that were left come when they are asked for.
      if (room && (listed.includes(room) || (standing?.wasIn && !standing.isForgotten))) add(room, wish)
    }
    return new Map([...wishes].map(([room, all]) => [room.id, { room, wanted: together(all) }]))
  }

  async #check(room: WorldRoom, wanted: Wanted, news: RoomNews | undefined): Promise<string[]> {
    const { person, truthOf } = this.#parts
    const standing = room.standings.get(person.userId)!
    const look = JSON.stringify([room.lastAt, standing, wanted])
    if (news === undefined && this.#checked.get(room.id) === look) return []
    this.#checked.set(room.id, look)
    const known = this.#rooms.get(room.id)
    if (known === undefined) return ['was not sent']
    if (standing.membership === 'invite') return this.#checkInvitation(known)
    // Somebody who was not in sees nothing but the end of the invitation.
    if (standing.membership !== 'join' && (standing.before !== 'join' || room.isWorldReadable)) return []
    const truth = await truthOf(person, room)
    // Of a room that the user left, no more comes when more is wished for.
    const isJoined = standing.membership === 'join'
    const least = isJoined || news?.isInitial ? wanted : { ...wanted, limit: 1, state: [] }
    const problems = [
      ...checkTimeline(known, truth, room.hidesHistory ? 1 : least.limit),
      ...checkState(known, truth, least),
    ]
    if (isJoined) problems.push(...checkSummary(known, truth))
    else problems.push(...checkName(known, truth))
    if (news === undefined) return problems
    const { isInitial, isLimited, isExpanded, timeline, raw } = news
    problems.push(...checkLazyMembers(known, news, wanted))
    if (isInitial && !isLimited && timeline[0]?.event_id !== truth.ids[0])
      problems.push('begins late, and is not limited')
    if (!isInitial && !isExpanded && this.#inScopeBefore.has(room.id) && (raw.num_live ?? 0) !== timeline.length) {
      problems.push(`num_live is ${raw.num_live} for ${timeline.length} events`)
    }
    if (isLimited) problems.push(...(await this.#checkBack(room, news, truth.ids)))
    return problems
  }

  #checkInvitation({ stripped }: KnownRoom): string[] {
    const { userId } = this.#parts.person
    const isShown = stripped?.some(
      ({ type, state_key: key, content }) =>
        type === 'm.room.member' && key === userId && content.membership === 'invite',
    )
    return isShown ? [] : ['the invitation is not shown']
  }

  /** The history goes on behind the token. */
  async #checkBack(room: WorldRoom, { timeline, raw }: RoomNews, ids: readonly string[]): Promise<string[]> {
    if (raw.prev_batch === undefined) return ['it is limited without prev_batch']
    if (timeline.length === 0 || !this.#parts.dice.chance(0.3)) return []
    const from = encodeURIComponent(raw.prev_batch)
    const path = inRoom(room.id, `/messages?dir=b&limit=3&from=${from}`)
    const { chunk } = await this.#parts.person.call('GET', path)
    const at = ids.indexOf(timeline[0].event_id)
    const before = ids.slice(Math.max(0, at - 3), at).toReversed()
    const found = chunk.map((event: Json) => event.event_id)
    return found.join() === before.join() ? [] : [`behind prev_batch are ${found}, not ${before}`]
  }
}

/** What matters of a room in an answer, in little space. */
export function outlineOf({ timeline, required_state: state, stripped_state, invite_state, ...rest }: Json): Json {
  const events = (some: readonly Json[] = []) =>
    some.map(({ type, state_key: key, event_id: id }) => `${type} ${key ?? ''} ${id}`)
  return { ...rest, timeline: events(timeline), state: events(state), stripped: events(stripped_state ?? invite_state) }
}
