import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import { openPushRules } from '../../../src/domain/push/rules.ts'
import { openIgnoredUsers } from '../../../src/domain/rooms/read/ignored-users.ts'
import { createUnread } from '../../../src/domain/sync/unread.ts'
import { type House, inRoom, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { DEFAULTS, KEYWORD, Model, type Rules, type Said } from './model.ts'

/** How many random histories; set UNREAD_HISTORIES for more, and UNREAD_SEED for other ones. */
const HISTORIES = Number(process.env.UNREAD_HISTORIES ?? 48)
const SEED = Number(process.env.UNREAD_SEED ?? 1)
const AT_ONCE = 4
const STEPS = 30

let house: House

beforeAll(async () => {
  house = await openHouse()
})

afterAll(() => house.close())

/** Repeatable random numbers. */
function dice(seed: number) {
  let state = seed * 2_654_435_761
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (count: number) => Math.floor(next() * count)
  return { chance: (p: number) => next() < p, below, oneOf: <T>(list: readonly T[]): T => list[below(list.length)]! }
}

const put = (person: Person, path: string, body: object) => person.call('PUT', `/pushrules/global/${path}`, body)
const drop = (person: Person, path: string) => person.ask('DELETE', `/pushrules/global/${path}`)

const THREAD_RULES = ['unsubscribed', 'subscribed'].map((name) => `postcontent/.io.element.msc4306.rule.${name}_thread`)

/** Makes the real rules of a user what the model says. */
async function applyRules(person: Person, room: string, before: Rules, rules: Rules): Promise<void> {
  if (before.muted !== rules.muted) {
    const conditions = [{ kind: 'event_match', key: 'room_id', pattern: room }]
    if (rules.muted) await put(person, `override/${room.slice(1)}`, { conditions, actions: [] })
    else await drop(person, `override/${room.slice(1)}`)
  }
  if (before.mentionsOnly !== rules.mentionsOnly) {
    if (rules.mentionsOnly) await put(person, `room/${encodeURIComponent(room)}`, { actions: [] })
    else await drop(person, `room/${encodeURIComponent(room)}`)
  }
  if (before.keyword !== rules.keyword) {
    const highlight = rules.keyword === 'loud' ? [{ set_tweak: 'highlight' }] : []
    if (rules.keyword === 'none') await drop(person, 'content/word')
    else await put(person, 'content/word', { pattern: KEYWORD, actions: ['notify', ...highlight] })
  }
  const toggle = (id: string, enabled: boolean) => put(person, `${id}/enabled`, { enabled })
  if (before.edits !== rules.edits) await toggle('override/.m.rule.suppress_edits', !rules.edits)
  if (before.messages !== rules.messages) await toggle('underride/.m.rule.message', rules.messages)
  if (before.threads !== rules.threads) for (const rule of THREAD_RULES) await toggle(rule, rules.threads)
}

class History {
  readonly room: string
  readonly model: Model
  readonly people: readonly Person[]
  readonly #dice: ReturnType<typeof dice>
  readonly log: string[] = []
  #sent = 0

  constructor(room: string, people: readonly Person[], rolls: ReturnType<typeof dice>) {
    this.room = room
    this.people = people
    this.#dice = rolls
    this.model = new Model(people[0]!.userId)
    for (const { userId } of people) this.model.meet(userId, DEFAULTS)
  }

  person(userId: string): Person {
    return this.people.find((person) => person.userId === userId)!
  }

  async send(person: Person, type: string, content: object, said: Omit<Said, 'id' | 'sender'>): Promise<void> {
    const path = inRoom(this.room, `/send/${encodeURIComponent(type)}/t${this.#sent++}`)
    const { event_id: id } = await person.call('PUT', path, content)
    this.model.say({ ...said, id, sender: person.userId })
  }

  async say(person: Person): Promise<void> {
    const { chance, oneOf, below } = this.#dice
    const body = chance(0.3) ? `more ${KEYWORD} please` : 'hello'
    const mentions = chance(0.2) ? [oneOf(this.people).userId, '@nobody:elsewhere'] : []
    const mentionsRoom = chance(0.1)
    const listed = { 'm.mentions': { user_ids: mentions, room: mentionsRoom } }
    const content = { msgtype: 'm.text', body, ...listed }
    const said = { body, mentions, mentionsRoom }
    const earlier = this.model.events.filter(({ kind }) => kind === 'message' || kind === 'edit' || kind === 'notice')
    const live = earlier.filter(({ redacted }) => !redacted)
    const kind = earlier.length === 0 ? 0 : below(10)
    const relate = (rel_type: string, event_id: string) => ({ 'm.relates_to': { rel_type, event_id } })
    if (kind < 3) return this.send(person, 'm.room.message', content, { ...said, kind: 'message', root: '' })
    if (kind < 6) {
      const roots = earlier
        .filter(({ id, root, kind: of }) => root === '' && of === 'message' && !this.#hops.has(id))
        .slice(0, 3)
      if (roots.length === 0) return undefined
      const { id } = oneOf(roots)
      const thread = { ...content, ...relate('m.thread', id) }
      return this.send(person, 'm.room.message', thread, { ...said, kind: 'message', root: id })
    }
    // What relates to something that relates to something: only the first relations count, so these do not go deeper.
    const targets = live.filter(({ kind: of }) => of === 'message')
    if (kind === 6 && targets.length > 0) {
      const { id } = oneOf(targets)
      const root = this.#rootFrom(id)
      const hop = this.#hops.get(id) ?? 0
      if (hop > 1) return undefined
      await this.send(
        person,
        'm.room.message',
        { ...content, ...relate('m.reference', id) },
        { ...said, kind: 'message', root },
      )
      this.#hops.set(this.model.events.at(-1)!.id, hop + 1)
      this.#targets.set(this.model.events.at(-1)!.id, id)
      return undefined
    }
    if (kind === 7 && targets.length > 0) {
      const { id } = oneOf(targets)
      const root = this.#rootFrom(id)
      if ((this.#hops.get(id) ?? 0) > 1) return undefined
      const edit = { ...content, 'm.new_content': content, ...relate('m.replace', id) }
      return this.send(person, 'm.room.message', edit, { ...said, kind: 'edit', root })
    }
    if (kind === 8 && targets.length > 0) {
      const { id } = oneOf(targets)
      const root = this.#rootFrom(id)
      if ((this.#hops.get(id) ?? 0) > 1) return undefined
      const relation = { 'm.relates_to': { rel_type: 'm.annotation', event_id: id, key: `k${this.#sent}` } }
      return this.send(person, 'm.reaction', { ...listed, ...relation }, { ...said, kind: 'reaction', root })
    }
    return this.send(
      person,
      'm.room.message',
      { ...content, msgtype: 'm.notice' },
      { ...said, kind: 'notice', root: '' },
    )
  }

  /** What events relate to, other than as a reply in a thread, and over how many relations. */
  readonly #targets = new Map<string, string>()
  readonly #hops = new Map<string, number>()

  /** The thread that is reached from an event. What was redacted relates to nothing any more. */
  #rootFrom(id: string): string {
    const event = this.model.events.find((one) => one.id === id)!
    if (event.redacted) return ''
    const target = this.#targets.get(id)
    return target === undefined ? event.root : this.#rootFrom(target)
  }

  async read(person: Person): Promise<void> {
    const { oneOf, chance } = this.#dice
    const { since, ignores } = this.model.readers.get(person.userId)!
    const events = this.model.events.slice(since).filter(({ sender }) => !ignores.has(sender))
    if (events.length === 0) return
    const event = oneOf(events)
    const kind = chance(0.3) ? 'm.read.private' : 'm.read'
    const isRoot = events.some(({ root }) => root === event.id)
    const thread = chance(0.3) ? undefined : isRoot && chance(0.3) ? event.id : event.root || 'main'
    const path = inRoom(this.room, `/receipt/${kind}/${encodeURIComponent(event.id)}`)
    await person.call('POST', path, thread === undefined ? {} : { thread_id: thread })
    this.model.read(person.userId, kind, thread, event.id)
  }

  async redact(): Promise<void> {
    const { oneOf } = this.#dice
    const [admin] = this.people
    const targets = this.model.events.filter(
      ({ kind, redacted }) => kind !== 'member' && kind !== 'redaction' && !redacted,
    )
    if (targets.length === 0) return
    const { id, sender } = oneOf(targets)
    const by = this.model.joined.includes(sender) && this.#dice.chance(0.5) ? this.person(sender) : admin!
    const path = inRoom(this.room, `/redact/${encodeURIComponent(id)}/r${this.#sent++}`)
    const { event_id } = await by.call('PUT', path, {})
    this.model.say({
      ...{ id: event_id, sender: by.userId, kind: 'redaction', body: '', mentions: [], mentionsRoom: false, root: '' },
    })
    this.model.redact(id)
  }

  async changeRules(person: Person, to?: Rules): Promise<void> {
    const { oneOf, below } = this.#dice
    const reader = this.model.readers.get(person.userId)!
    const before = reader.rules
    const changes: (() => Partial<Rules>)[] = [
      () => ({ muted: !before.muted }),
      () => ({ mentionsOnly: !before.mentionsOnly }),
      () => ({ keyword: oneOf(['none', 'quiet', 'loud'] as const) }),
      () => ({ edits: !before.edits }),
      () => ({ messages: !before.messages }),
      () => ({ threads: !before.threads }),
    ]
    const rules = to ?? { ...before, ...changes[below(changes.length)]!() }
    await applyRules(person, this.room, before, rules)
    this.model.change(person.userId, rules)
  }

  async follow(person: Person): Promise<void> {
    const { oneOf, chance } = this.#dice
    const roots = this.model.events.filter(({ root }) => root !== '').map(({ root }) => root)
    if (roots.length === 0) return
    const [root, isFollowing] = [oneOf(roots), chance(0.6)]
    const path = inRoom(this.room, `/thread/${encodeURIComponent(root)}/subscription`)
    const whole = `/_matrix/client/unstable/io.element.msc4306${path}`
    // What was said before a user joined may be hidden from them.
    const { status } = await person.ask(isFollowing ? 'PUT' : 'DELETE', whole, isFollowing ? {} : undefined)
    if (status === 200) this.model.follow(person.userId, root, isFollowing)
  }

  async ignore(person: Person, whom: readonly Person[]): Promise<void> {
    const path = `/user/${encodeURIComponent(person.userId)}/account_data/m.ignored_user_list`
    await person.call('PUT', path, { ignored_users: Object.fromEntries(whom.map(({ userId }) => [userId, {}])) })
    for (const other of this.people) this.model.ignore(person.userId, other.userId, whom.includes(other))
  }

  async step(): Promise<string> {
    const { oneOf, chance, below } = this.#dice
    const person = this.person(oneOf(this.model.joined))
    const what = below(100)
    if (what < 55) await this.say(person)
    else if (what < 72) await this.read(person)
    else if (what < 79) await this.redact()
    else if (what < 87) await this.changeRules(person)
    else if (what < 91) await this.follow(person)
    else if (what < 95) {
      await this.ignore(
        person,
        this.people.filter((other) => other !== person && chance(0.3)),
      )
    } else {
      const mover = this.people[1 + below(this.people.length - 1)]!
      const isIn = this.model.joined.includes(mover.userId)
      if (isIn && chance(0.5)) return 'stay'
      await (isIn ? mover.leave(this.room) : mover.join(this.room))
      const { event_id } = await memberOf(this.people[0]!, this.room, mover.userId)
      this.model.enter(mover.userId, !isIn, event_id)
    }
    return `${what} ${person.userId}`
  }
}

async function memberOf(person: Person, room: string, userId: string): Promise<Json> {
  const state: Json[] = await person.call('GET', inRoom(room, '/state'))
  return state.find(({ type, state_key }) => type === 'm.room.member' && state_key === userId)
}

/** What a sync shows, with threads apart and together. */
async function shown(person: Person, room: string) {
  const filter = (timeline: object) =>
    encodeURIComponent(JSON.stringify({ room: { rooms: [room], timeline: { limit: 1, ...timeline } } }))
  const ask = async (timeline: object) =>
    (await person.call('GET', `/sync?timeout=0&filter=${filter(timeline)}`)).rooms.join[room]
  const apart = await ask({ unread_thread_notifications: true })
  const together = await ask({})
  return {
    main: apart.unread_notifications,
    threads: apart.unread_thread_notifications ?? {},
    total: together.unread_notifications,
  }
}

/** The same from the database alone. */
async function readAnew(userId: string, room: string) {
  const { db } = house.server.database
  const budget = new ByteBudget(2 ** 20)
  const ignoredUsers = await openIgnoredUsers({ db, budget })
  const pushRules = await openPushRules({ db, budget, ignoredUsers, threadFollowers: { threadOf: () => undefined } })
  const unread = createUnread({ db, budget, pushRules, ignoredUsers })
  const [row] = await db.query<{ user_nid: number; room_nid: number; notifiable: number }>(
    'SELECT user_nid, room_nid, notifiable FROM matrix_user, room WHERE user_id = $1 AND room_id = $2',
    [userId, room],
  )
  const { main, threads } = await unread.count(row!.user_nid, row!.room_nid, row!.notifiable)
  return { main, threads: Object.fromEntries(threads) }
}

async function check(history: History, userId: string): Promise<void> {
  const { main, threads } = history.model.counts(userId)
  const total = { ...main }
  for (const { notification_count, highlight_count } of Object.values(threads)) {
    total.notification_count += notification_count
    total.highlight_count += highlight_count
  }
  const [found, anew] = await Promise.all([shown(history.person(userId), history.room), readAnew(userId, history.room)])
  const expected = { main, threads, total }
  if (isDeepStrictEqual(found, expected) && isDeepStrictEqual(anew, { main, threads })) return
  expect({ found, anew, log: history.log }).toEqual({ found: expected, anew: { main, threads }, log: history.log })
}

async function live(people: readonly Person[], seed: number): Promise<void> {
  const rolls = dice(seed)
  const [admin] = people
  const room = await admin!.createRoom({ preset: 'public_chat' })
  const history = new History(room, people, rolls)
  for (const person of people) {
    if (person !== admin && rolls.chance(0.2)) continue
    if (person !== admin) await person.join(room)
    history.model.enter(person.userId, true, (await memberOf(admin!, room, person.userId)).event_id)
  }
  for (let step = 0; step < STEPS; step++) {
    history.log.push(`seed ${seed}: ${await history.step()}`)
    await check(history, rolls.oneOf(history.model.joined))
  }
  for (const userId of history.model.joined) await check(history, userId)
  for (const person of people) {
    await history.changeRules(person, DEFAULTS)
    await history.ignore(person, [])
    if (history.model.joined.includes(person.userId)) await person.leave(room)
    await person.ask('POST', inRoom(room, '/forget'), {})
  }
}

it('unread counts are what a reader who remembers everything counts', { timeout: 3_600_000 }, async () => {
  let next = 0
  const run = async (name: string): Promise<void> => {
    const people: Person[] = []
    for (const one of ['a', 'b', 'c', 'd']) people.push(await house.person(`${name}${one}`))
    // Who has said that these do not apply follows threads without a change of rules.
    for (const person of people)
      for (const rule of THREAD_RULES) await put(person, `${rule}/enabled`, { enabled: false })
    while (next < HISTORIES) await live(people, SEED + next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => run(`run${index}`)))
})
