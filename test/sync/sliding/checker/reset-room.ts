import pg from 'pg'
import type { EventId, RoomId, UserId } from '../../../../src/core/ids.ts'
import type { JsonObject } from '../../../../src/core/json.ts'
import { roomVersion } from '../../../../src/core/room-version.ts'
import type { Dice } from '../../../federation/dice.ts'
import type { RoomView } from '../../../federation/room-view.ts'
import { type Besieged, EVIL } from '../../../rooms/besieged.ts'
import { Forge, type Sketch } from '../../../rooms/forge.ts'
import type { Truth } from './truth.ts'

const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = `@guest:${EVIL}` as UserId
const LATE = `@late:${EVIL}` as UserId
const OTHERS = [CREATOR, GUEST, LATE]
/** Comes and goes, and may be taken out by state resolution; `keeper` is in from before the first fork. */
export const WANDERER = 'wanderer'
export const KEEPER = 'keeper'

/** How often each is done. A fork is made by somebody who has not heard of what came since some event of the past. */
const WEIGHTS = { say: 5, set: 12, enter: 5, fork: 10, restore: 6, wander: 8, speak: 4 }
/** How far back forks begin. */
const FORK_REACH = 9

/** What is so in the room, by the database. */
export interface RoomTruth extends Truth {
  membershipOf(userId: string): string | undefined
}

/** A room of another server whose users fork its history: state resolution takes state and members away that nobody has removed. */
export class ResetRoom {
  readonly #home: Besieged
  readonly #dice: Dice
  readonly #forge: Forge
  /** Forks begin after this. */
  readonly #firstFork: EventId
  /** What `WANDERER` must not be shown, because they were out when it came. */
  readonly hidden = new Set<string>()
  #count = 0

  private constructor(home: Besieged, dice: Dice, forge: Forge) {
    this.#home = home
    this.#dice = dice
    this.#forge = forge
    this.#firstFork = forge.latest!
  }

  static async open(home: Besieged, seed: number, dice: Dice): Promise<ResetRoom> {
    const levels = { users: { [GUEST]: 50 }, state_default: 50, invite: 0 }
    const forge = Forge.open(roomVersion(dice.pick(['10', '11']))!, `resets-${seed}`, CREATOR, levels)
    forge.member(GUEST, 'join')
    forge.set(CREATOR, 'm.room.name', { name: 'first' })
    await home.takeJoin(forge, KEEPER)
    await forge.catchUp(home.server)
    home.answers(forge.answers())
    return new ResetRoom(home, dice, forge)
  }

  get id(): RoomId {
    return this.#forge.roomId
  }

  /** Does something that is possible, and says what. @param isKilled the server dies meanwhile */
  async step(isKilled: boolean): Promise<string> {
    const actions = {
      ...{ say: () => this.#say(), set: () => this.#set(), enter: () => this.#enter(), fork: () => this.#fork() },
      ...{ restore: () => this.#restore(), wander: () => this.#wander(), speak: () => this.#speak() },
    }
    const before = await this.#home.view(this.id)
    const wasIn = membershipIn(before, this.#home.user(WANDERER)) === 'join'
    const kind = this.#dice.weighted(WEIGHTS)
    const done = await actions[kind]().then((act) => (isKilled ? this.#killedDuring(act) : act()))
    const after = await this.#home.view(this.id)
    const isIn = membershipIn(after, this.#home.user(WANDERER)) === 'join'
    if (isIn) this.hidden.clear()
    else if (!wasIn) for (const id of after.events.keys()) if (!before.events.has(id)) this.hidden.add(id)
    return `${kind}: ${done}`
  }

  async truth(): Promise<RoomTruth> {
    const view = await this.#home.view(this.id)
    const ids = [...view.events.values()].filter(({ standing, isInTimeline }) => standing === null && isInTimeline)
    const contentOf = (id: EventId | undefined): JsonObject => (id ? view.events.get(id)!.pdu.content : {})
    const members = [...view.state].filter(([key]) => key.startsWith('m.room.member '))
    const countOf = (membership: string) => members.filter(([, id]) => contentOf(id).membership === membership).length
    const name = contentOf(view.state.get('m.room.name ')).name
    return {
      ids: ids.map(({ id }) => id),
      state: new Map([...view.state].map(([key, id]) => [key.replace(' ', '|'), id])),
      joined: countOf('join'),
      invited: countOf('invite'),
      name: typeof name === 'string' ? name : undefined,
      membershipOf: (userId) => membershipIn(view, userId),
    }
  }

  /** What others send goes over any number of kills until it has come. What users of ours do may be lost. */
  async #killedDuring(act: () => Promise<string>): Promise<string> {
    const acting = act().catch((error: Error) => error.message)
    await cutOff(this.#home)
    await acting
    await this.#home.server.restart()
    return `killed, then ${await act()}`
  }

  #receive(id: EventId): () => Promise<string> {
    return async () => `${id} ${await this.#home.kinds(this.#forge, [id])}`
  }

  /** Where honest servers build on: the newest events, with the state that they resolve to. */
  async #head(): Promise<{ prev: readonly EventId[]; state: RoomView['state'] }> {
    const view = await this.#forge.catchUp(this.#home.server)
    return { prev: view.extremities, state: view.state }
  }

  async #say(): Promise<() => Promise<string>> {
    const head = await this.#head()
    const sender = this.#dice.pick(OTHERS)
    return this.#receive(this.#forge.say(sender, `text ${this.#count++}`, head))
  }

  async #set(): Promise<() => Promise<string>> {
    const head = await this.#head()
    const number = this.#count++
    const [type, content, key] = this.#dice.pick([
      ['m.room.name', { name: `name ${number}` }, ''],
      ['m.room.topic', { topic: `topic ${number}` }, ''],
      ['test.state', { number }, 'a'],
      ['test.state', { number }, 'b'],
    ] as const)
    return this.#receive(
      this.#forge.set(this.#dice.pick([CREATOR, GUEST, GUEST]), type, content, { ...head, state_key: key }),
    )
  }

  async #enter(): Promise<() => Promise<string>> {
    const head = await this.#head()
    return this.#receive(this.#forge.member(LATE, this.#dice.pick(['join', 'join', 'leave']), head))
  }

  /** What forks have taken away is given back, so that there is something to take away. */
  async #restore(): Promise<() => Promise<string>> {
    const head = await this.#head()
    const id = this.#dice.chance(0.6)
      ? this.#levels(50, head)
      : this.#forge.set(CREATOR, 'm.room.join_rules', { join_rule: 'public' }, head)
    return this.#receive(id)
  }

  /** Power, rules and bans are decided before all else, so what others did meanwhile may turn out to have had no right. */
  async #fork(): Promise<() => Promise<string>> {
    await this.#head()
    const view = await this.#home.view(this.id)
    const accepted = [...view.events.values()].filter(({ standing, isInTimeline }) => standing === null && isInTimeline)
    const begin = Math.max(
      accepted.findIndex(({ id }) => id === this.#firstFork),
      accepted.length - FORK_REACH,
    )
    const prev = [this.#dice.pick(accepted.slice(begin)).id]
    const sketch = this.#dice.pick<() => EventId>([
      () => this.#levels(this.#dice.pick([0, 0, 50]), { prev }),
      () =>
        this.#forge.set(CREATOR, 'm.room.join_rules', { join_rule: this.#dice.pick(['invite', 'public']) }, { prev }),
      () => this.#remove(LATE, prev),
      () => this.#remove(this.#home.user(WANDERER), prev),
      () => this.#forge.set(GUEST, 'm.room.topic', { topic: `fork ${this.#count++}` }, { prev }),
    ])
    const id = sketch()
    await this.#forge.catchUp(this.#home.server)
    return this.#receive(id)
  }

  #levels(ofGuest: number, on: Pick<Sketch, 'prev' | 'state'>): EventId {
    const users = { [CREATOR]: 100, [GUEST]: ofGuest }
    const content = { users, state_default: 50, invite: 0, at: this.#count++ }
    return this.#forge.set(CREATOR, 'm.room.power_levels', content, on)
  }

  #remove(user: UserId, prev: readonly EventId[]): EventId {
    const membership = this.#dice.pick(['ban', 'leave', 'leave', 'invite'])
    return this.#forge.make({
      ...{ type: 'm.room.member', sender: CREATOR, state_key: user, prev },
      content: { membership, at: this.#count++ },
    })
  }

  async #wander(): Promise<() => Promise<string>> {
    const isIn = membershipIn(await this.#home.view(this.id), this.#home.user(WANDERER)) === 'join'
    if (isIn && this.#dice.chance(0.6)) return this.#speak()
    const act = isIn
      ? () => this.#home.does(WANDERER, (rooms, by) => rooms.leave(by, this.id, {}))
      : () => this.#home.takeLocalJoin(WANDERER, this.id)
    return async () => {
      const refusal = await act().then(
        () => 'done',
        ({ errcode, message }: Error & { errcode?: string }) => {
          if (errcode === undefined) throw new Error(message)
          return errcode
        },
      )
      return `${isIn ? 'leave' : 'join'} ${refusal}`
    }
  }

  async #speak(): Promise<() => Promise<string>> {
    const isIn = membershipIn(await this.#home.view(this.id), this.#home.user(WANDERER)) === 'join'
    const name = isIn ? this.#dice.pick([KEEPER, WANDERER]) : KEEPER
    return async () => `${name} ${await this.#home.say(name, this.id, `text ${this.#count++}`)}`
  }
}

function membershipIn({ state, events }: RoomView, userId: string): string | undefined {
  const id = state.get(`m.room.member ${userId}`)
  return id && (events.get(id)!.pdu.content.membership as string)
}

/** The server loses its database in the middle of what it does: what it had not written is gone, and what it has written it may not know. */
async function cutOff({ server }: Besieged): Promise<void> {
  const client = new pg.Client(server.connection)
  await client.connect()
  try {
    await client.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
  } finally {
    await client.end()
  }
}
