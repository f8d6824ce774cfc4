import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type House, openHouse } from '../rooms/people.ts'
import { type KeyedPerson, keyedPerson, listsOf } from './people-with-keys.ts'

let house: House
let runs = 0

beforeAll(async () => {
  house = await openHouse()
})
afterAll(() => house.close())

const PEOPLE = 4
const ROOMS = 3
const RUNS = Number(process.env.DEVICE_LIST_RUNS ?? 12)

const ACTS = [
  'join',
  'leave',
  'invite',
  'kick',
  'ban',
  'unban',
  'rekey',
  'rename',
  'say',
  'sync',
  'sync',
  'sync',
] as const

const step = fc.record({
  act: fc.constantFrom(...ACTS),
  who: fc.nat(PEOPLE - 1),
  whom: fc.nat(PEOPLE - 1),
  room: fc.nat(ROOMS - 1),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** What a person knew at their last sync. */
interface Knowledge {
  token: string
  sharing: Set<number>
  /** Who was touched since by anything that may be a reason to ask for their keys. */
  touched: Set<number>
  /** Who changed keys since, while sharing a room or not. */
  rekeyed: Set<number>
}

/** Who is where, kept beside the server. */
class Model {
  readonly memberships = Array.from({ length: ROOMS }, () => Array<string>(PEOPLE).fill('leave'))
  readonly known: Knowledge[] = []

  sharing(who: number): Set<number> {
    const rooms = this.memberships.filter((members) => members[who] === 'join')
    return new Set(everybody.filter((other) => other !== who && rooms.some((members) => members[other] === 'join')))
  }

  /** Those invited into the rooms of somebody. */
  invited(who: number): Set<number> {
    const rooms = this.memberships.filter((members) => members[who] === 'join')
    return new Set(everybody.filter((other) => rooms.some((members) => members[other] === 'invite')))
  }

  touch(...people: number[]): void {
    for (const knowledge of this.known) for (const person of people) knowledge.touched.add(person)
  }
}

const everybody = Array.from({ length: PEOPLE }, (_, index) => index)

class Play {
  readonly #model = new Model()
  readonly #people: readonly KeyedPerson[]
  readonly #rooms: readonly string[]

  private constructor(people: readonly KeyedPerson[], rooms: readonly string[]) {
    this.#people = people
    this.#rooms = rooms
  }

  /** Everybody has synced, and the first person is in every room. */
  static async begin(): Promise<Play> {
    const run = ++runs
    const people: KeyedPerson[] = []
    for (const index of everybody) people.push(await keyedPerson(house, `p${run}x${index}`))
    const rooms: string[] = []
    for (let index = 0; index < ROOMS; index++) {
      rooms.push(await people[0]!.createRoom({ preset: 'public_chat' }))
    }
    const play = new Play(people, rooms)
    for (const members of play.#model.memberships) members[0] = 'join'
    for (const person of people) {
      const { next_batch: token } = await person.sync()
      play.#model.known.push({ token, sharing: new Set(), touched: new Set(), rekeyed: new Set() })
    }
    return play
  }

  async take({ act, who, whom, room }: Step): Promise<void> {
    const [person, other, id] = [this.#people[who]!, this.#people[whom]!, this.#rooms[room]!]
    const members = this.#model.memberships[room]!
    if (act === 'sync') return this.sync(who)
    if (act === 'rekey') {
      await person.rekey()
      for (const knowledge of this.#model.known) knowledge.rekeyed.add(who)
      return
    }
    if (act === 'rename') {
      const path = `/profile/${encodeURIComponent(person.userId)}/displayname`
      await person.call('PUT', path, { displayname: `n${Math.floor(performance.now())}` })
      return this.#model.touch(who)
    }
    const isIn = members[who] === 'join'
    if (act === 'say') return isIn ? void (await person.say(id, 'x')) : undefined
    const path = `/rooms/${encodeURIComponent(id)}/${act}`
    const isOfSelf = act === 'join' || act === 'leave'
    const { status } = await person.ask('POST', path, isOfSelf ? {} : { user_id: other.userId })
    if (status !== 200) return
    const after = { join: 'join', leave: 'leave', invite: 'invite', kick: 'leave', ban: 'ban', unban: 'leave' }[act]
    members[isOfSelf ? who : whom] = after
    this.#model.touch(who, whom)
  }

  async sync(who: number): Promise<void> {
    const model = this.#model
    const person = this.#people[who]!
    const known = model.known[who]!
    const answer = await person.sync(`&since=${known.token}`)
    const { changed, left } = listsOf(answer)
    const sharing = model.sharing(who)
    const idsOf = (people: Iterable<number>) => [...people].map((index) => this.#people[index]!.userId).toSorted()
    const must = [...sharing].filter((other) => !known.sharing.has(other) || known.rekeyed.has(other))
    if (known.rekeyed.has(who)) must.push(who)
    const moved = known.touched.has(who)
    const may = [...sharing, ...model.invited(who), ...(known.rekeyed.has(who) ? [who] : [])].filter(
      (other) => moved || known.touched.has(other) || known.rekeyed.has(other),
    )
    expect(changed).toEqual(expect.arrayContaining(idsOf(must)))
    expect(idsOf(new Set(may))).toEqual(expect.arrayContaining(changed))
    expect(left).toEqual(idsOf([...known.sharing].filter((other) => !sharing.has(other))))
    model.known[who] = { token: answer.next_batch, sharing, touched: new Set(), rekeyed: new Set() }
  }

  async end(): Promise<void> {
    for (const who of everybody) await this.sync(who)
  }
}

test(
  'whatever happens, a sync names who has to be asked for again, nobody who has no reason, and exactly who has left',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), fc.boolean(), async (steps, restarts) => {
        const play = await Play.begin()
        for (const [index, each] of steps.entries()) {
          if (restarts && index === Math.floor(steps.length / 2)) await house.restart()
          await play.take(each)
        }
        await play.end()
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
  },
  60_000 + RUNS * 5_000,
)
