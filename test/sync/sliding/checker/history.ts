import { Dice } from '../../../federation/dice.ts'
import { type Person, personOf } from '../../../rooms/people.ts'
import { type Api, ApiError, login, register } from '../../../support/api.ts'
import { waitUntil } from '../../../support/wait.ts'
import { Actions, type Member, type RemoveRoom } from './actions.ts'
import type { Ask, Filter, ListAsk, Wish } from './asking.ts'
import { Chain, type Fate } from './chain.ts'
import { ClassicChain } from './classic-chain.ts'
import { createTruth } from './truth.ts'
import { World } from './world.ts'

const PEOPLE = 3
const PATIENCE_MS = 60_000

const STATES: readonly Omit<Wish, 'limit'>[] = [
  {
    state: [
      ['m.room.create', ''],
      ['m.room.name', ''],
    ],
    isLazy: false,
  },
  {
    state: [
      ['m.room.name', ''],
      ['test.state', '*'],
    ],
    isLazy: true,
  },
  {
    state: [
      ['m.room.member', '*'],
      ['m.room.topic', ''],
    ],
    isLazy: false,
  },
  { state: [['*', '*']], isLazy: false },
  { state: [], isLazy: true },
]

/** All that is said and asked in one server by a few people, each with a few connections. */
export class History {
  readonly world = new World()
  readonly #api: Api
  readonly #dice: Dice
  readonly #removeRoom: RemoveRoom
  readonly seed: number
  readonly #truthOf = createTruth()
  readonly #chains: Chain[] = []
  readonly #classic: ClassicChain[] = []
  #actions!: Actions
  /** What was done so far, for who looks into a failure. */
  readonly log: string[] = []

  constructor(api: Api, seed: number, removeRoom: RemoveRoom) {
    this.#api = api
    this.#removeRoom = removeRoom
    this.seed = seed
    this.#dice = new Dice(seed)
  }

  async open(): Promise<void> {
    const people: Member[] = []
    for (let index = 0; index < PEOPLE; index++) people.push(await this.#enter(`s${this.seed}-${index}`))
    this.#actions = new Actions({ people, world: this.world, dice: this.#dice, removeRoom: this.#removeRoom })
    await this.#actions.start()
  }

  async #enter(name: string): Promise<Member> {
    const phone = personOf(this.#api, await register(this.#api, name))
    const laptop = personOf(this.#api, await login(this.#api, name))
    // A classic sync would take the messages to the device.
    const tablet = personOf(this.#api, await login(this.#api, name))
    const parts = { world: this.world, truthOf: this.#truthOf, dice: this.#dice }
    const chain = (person: Person, form: 'merged' | 'unstable', connId: string, hasToDevice: boolean) => {
      const made = new Chain({ api: this.#api, ...parts, person, form, connId, hasToDevice })
      made.want(this.#randomAsk(person.userId))
      this.#chains.push(made)
    }
    chain(phone, 'unstable', 'rooms', true)
    chain(phone, 'merged', 'other', false)
    if (this.#dice.chance(0.5)) chain(laptop, 'merged', 'rooms', true)
    this.#classic.push(new ClassicChain({ ...parts, person: tablet }))
    return { phone, laptop }
  }

  #randomWish(userId: string): Wish {
    const dice = this.#dice
    const wish = dice.pick(STATES)
    const own = dice.chance(0.5) ? [['m.room.member', userId] as const] : []
    return { limit: dice.pick([1, 1, 2, 5, 20]), ...wish, state: [...wish.state, ...own] }
  }

  #randomList(userId: string): ListAsk {
    const dice = this.#dice
    const first = dice.pick([0, 0, 0, 1])
    const filter: Filter = dice.pick([{}, {}, {}, { isInvite: true }, { isInvite: false }, { isDirect: true }])
    return { ...this.#randomWish(userId), range: [first, first + dice.below(4)], filter }
  }

  #randomAsk(userId: string): Ask {
    const dice = this.#dice
    const lists: Record<string, ListAsk> = { all: this.#randomList(userId) }
    if (dice.chance(0.3)) lists.more = this.#randomList(userId)
    const subscriptions: Record<string, Wish> = {}
    const rooms = [...this.world.rooms.keys()]
    if (rooms.length > 0 && dice.chance(0.4)) subscriptions[dice.pick(rooms)] = this.#randomWish(userId)
    return { lists, subscriptions }
  }

  /** @param restart starts the server again, now and then: what was only in memory is gone */
  async run(steps: number, restart?: () => Promise<void>): Promise<void> {
    for (let step = 0; step < steps; step++) {
      this.log.push(await this.#actions.step())
      if (restart && this.#dice.chance(0.015)) {
        this.log.push('restart')
        await restart()
        this.world.restart()
      }
      if (this.#dice.chance(0.7)) await this.#ask()
      if (this.#dice.chance(0.2)) await this.#dice.pick(this.#classic).turn(this.#dice.chance(0.2))
    }
  }

  /** People go on while the server is killed: what they send is sent again until it is answered, and answers are lost. */
  async endure(steps: number): Promise<void> {
    const asking: Promise<unknown>[] = []
    for (let step = 0; step < steps; step++) {
      asking.push(
        this.#dice
          .pick(this.#chains)
          .turn('lost')
          .catch(() => {}),
      )
      this.log.push(`${await this.#actions.persist(tryUntilDone)}, in the storm`)
    }
    await Promise.all(asking)
    this.world.restart()
  }

  async #ask(): Promise<void> {
    const dice = this.#dice
    const chain = dice.pick(this.#chains)
    if (dice.chance(0.25)) chain.want(this.#randomAsk(chain.userId))
    if (dice.chance(0.02)) {
      const foreign = this.#chains.find((other) => other !== chain && other.pos !== undefined)?.pos
      await chain.tryForeignPos(foreign ?? 'nonsense')
    }
    const fate: Fate = dice.pick(['answered', 'answered', 'answered', 'answered', 'lost', 'given up'])
    this.log.push(`${chain.name} ${fate}`)
    await chain.turn(fate)
  }

  /** Everything of everyone is asked for once more, and then there is no more. */
  async finish(): Promise<void> {
    const all: ListAsk = { range: [0, 99], filter: {}, limit: 5, state: [['*', '*']], isLazy: false }
    for (const chain of this.#chains) {
      chain.want({ lists: { all }, subscriptions: {} })
      await chain.turn()
      for (let left = chain.outstanding(); left > 0; left = chain.outstanding()) {
        await chain.turn()
        if (chain.outstanding() >= left) throw new Error(`${chain.name}: ${left} messages to the device never come`)
      }
      const rooms = await chain.turn()
      if (rooms > 0) throw new Error(`${chain.name}: ${rooms} rooms come without news`)
    }
    for (const classic of this.#classic) {
      await classic.turn(false)
      const unread = await classic.unread()
      for (const chain of this.#chains) if (chain.userId === classic.userId) chain.checkUnread(unread)
    }
  }
}

/** While the server is away there is no connection, no answer, or a 5xx; anything else is a defect. */
async function tryUntilDone<T>(act: () => Promise<T>): Promise<T> {
  const { outcome } = await waitUntil(
    'the server',
    () =>
      act().then(
        (outcome) => ({ outcome }),
        (error: Error) => {
          if (error instanceof ApiError && error.status < 500) throw error
          return undefined
        },
      ),
    { timeoutMs: PATIENCE_MS },
  )
  return outcome
}

/** Event ids and room ids by their first characters, for a person to read. */
export const shortened = (text: string): string => text.replace(/([$!][\w-]{5})[\w-]+(:localhost)?/g, '$1')
