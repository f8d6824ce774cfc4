import type { Dice } from '../../../federation/dice.ts'
import { inRoom, type Person } from '../../../rooms/people.ts'
import type { World, WorldRoom } from './world.ts'

/** Somebody with two devices. */
export interface Member {
  readonly phone: Person
  readonly laptop: Person
}

const MAX_ROOMS = 6
/** Everybody may set state; only the maker of a room may remove others, and take back what they said. */
const LEVELS = {
  events: {},
  users_default: 0,
  state_default: 0,
  events_default: 0,
  kick: 50,
  ban: 50,
  redact: 50,
  invite: 0,
}
const VISIBILITIES = ['shared', 'invited', 'joined', 'world_readable']

/** How often each is done. */
const WEIGHTS = {
  ...{ say: 30, setState: 10, redact: 4, enter: 10, leave: 5, invite: 6, remove: 5, unban: 2, forget: 2 },
  ...{ createRoom: 3, removeRoom: 1, type: 6, read: 6, setAccountData: 6, sendToDevice: 6 },
}

/** An administrator removes all of a room; resolves once it is gone. */
export type RemoveRoom = (roomId: string) => Promise<void>

type Action = () => Promise<string | undefined>

/** What people do: by chance, and noted in the world. */
export class Actions {
  readonly #people: readonly Member[]
  readonly #world: World
  readonly #dice: Dice
  readonly #removeRoom: RemoveRoom
  #count = 0

  constructor(parts: { people: readonly Member[]; world: World; dice: Dice; removeRoom: RemoveRoom }) {
    this.#people = parts.people
    this.#removeRoom = parts.removeRoom
    this.#world = parts.world
    this.#dice = parts.dice
  }

  async start(): Promise<void> {
    await this.#createRoom()
    await this.#createRoom()
  }

  /** Does something that is possible now, and says what. */
  async step(): Promise<string> {
    const actions = {
      ...{ say: () => this.#say(), setState: () => this.#setState(), redact: () => this.#redact() },
      ...{ enter: () => this.#enter(), leave: () => this.#leave(), invite: () => this.#invite() },
      ...{ remove: () => this.#remove(), unban: () => this.#unban(), forget: () => this.#forget() },
      ...{ createRoom: () => this.#createRoom(), removeRoom: () => this.#removeAll() },
      ...{ type: () => this.#type(), read: () => this.#read() },
      ...{ setAccountData: () => this.#setAccountData(), sendToDevice: () => this.#sendToDevice() },
    } satisfies Record<keyof typeof WEIGHTS, Action>
    for (;;) {
      const done = await actions[this.#dice.weighted(WEIGHTS)]()
      if (done !== undefined) return done
    }
  }

  /** Something that may be tried again and happens once all the same. */
  async persist(tryUntilDone: <T>(act: () => Promise<T>) => Promise<T>): Promise<string> {
    if (this.#dice.chance(0.3)) {
      const { send, done } = this.#messageToDevice()
      await tryUntilDone(send)
      return done()
    }
    const { room, person } = this.#pickJoined()
    const number = this.#count++
    const path = inRoom(room.id, `/send/m.room.message/persist-${number}`)
    const { event_id: id } = await tryUntilDone(() =>
      person.call('PUT', path, { msgtype: 'm.text', body: `text ${number}` }),
    )
    room.messages.push({ id, sender: person.userId })
    this.#world.touch(room)
    return `${person.userId} says ${id} in ${room.id}`
  }

  #personOf(userId: string): Person {
    return this.#people.find(({ phone }) => phone.userId === userId)!.phone
  }

  #membership = (room: WorldRoom, { userId }: Person) => room.standings.get(userId)?.membership

  /** A room, and somebody with this membership in it who is not its maker. */
  #pick(...memberships: (string | undefined)[]): { room: WorldRoom; person: Person } | undefined {
    const places = [...this.#world.rooms.values()].flatMap((room) =>
      this.#people
        .map(({ phone }) => ({ room, person: phone }))
        .filter(({ person }) => person.userId !== room.admin && memberships.includes(this.#membership(room, person))),
    )
    return places.length === 0 ? undefined : this.#dice.pick(places)
  }

  /** A room, and somebody who is in it. */
  #pickJoined(): { room: WorldRoom; person: Person } {
    const room = this.#dice.pick([...this.#world.rooms.values()])
    const joined = this.#people.map(({ phone }) => phone).filter((person) => this.#membership(room, person) === 'join')
    return { room, person: this.#dice.pick(joined) }
  }

  async #createRoom(): Promise<string | undefined> {
    if (this.#world.rooms.size >= MAX_ROOMS) return undefined
    const { phone: admin } = this.#dice.pick(this.#people)
    const isPublic = this.#dice.chance(0.7)
    const id = await admin.createRoom({
      preset: isPublic ? 'public_chat' : 'private_chat',
      ...(this.#dice.chance(0.5) && { name: `Room ${this.#world.rooms.size}` }),
      power_level_content_override: LEVELS,
    })
    this.#world.addRoom(id, admin.userId, isPublic)
    return `${admin.userId} makes ${id}`
  }

  async #removeAll(): Promise<string | undefined> {
    if (this.#world.rooms.size < 3) return undefined
    const { id } = this.#dice.pick([...this.#world.rooms.values()])
    await this.#removeRoom(id)
    this.#world.removeRoom(id)
    return `${id} is removed from the server`
  }

  async #say(): Promise<string> {
    const { room, person } = this.#pickJoined()
    const id = await person.say(room.id, `text ${this.#count++}`)
    room.messages.push({ id, sender: person.userId })
    this.#world.touch(room)
    return `${person.userId} says ${id} in ${room.id}`
  }

  async #setState(): Promise<string> {
    const { room, person } = this.#pickJoined()
    const number = this.#count++
    const [type, content, key] = this.#dice.pick([
      ['test.state', { number }, 'a'],
      ['test.state', { number }, 'b'],
      ['m.room.topic', { topic: `topic ${number}` }, ''],
      ['m.room.name', { name: `name ${number}` }, ''],
      ['m.room.member', { membership: 'join', displayname: `name ${number}` }, person.userId],
    ] as const)
    await person.setState(room.id, type, content, key)
    this.#world.touch(room)
    if (!this.#dice.chance(0.15)) return `${person.userId} sets ${type} ${key} in ${room.id}`
    const visibility = this.#dice.pick(VISIBILITIES)
    // The same again would be no event.
    await this.#personOf(room.admin).setState(room.id, 'm.room.history_visibility', {
      ...{ history_visibility: visibility, number },
    })
    this.#world.touch(room)
    room.hidesHistory ||= visibility === 'invited' || visibility === 'joined'
    room.isWorldReadable ||= visibility === 'world_readable'
    return `${room.id} becomes ${visibility}`
  }

  async #redact(): Promise<string | undefined> {
    const { room } = this.#pickJoined()
    if (room.messages.length === 0) return undefined
    const [message] = room.messages.splice(this.#dice.below(room.messages.length), 1)
    const admin = this.#personOf(room.admin)
    const path = inRoom(room.id, `/redact/${encodeURIComponent(message!.id)}/r${this.#count++}`)
    await admin.call('PUT', path, {})
    this.#world.touch(room)
    return `${message!.id} is redacted in ${room.id}`
  }

  async #enter(): Promise<string | undefined> {
    const place = this.#pick('invite', 'leave', undefined)
    if (place === undefined) return undefined
    const { room, person } = place
    if (!room.isPublic && this.#membership(room, person) !== 'invite') return undefined
    await person.join(room.id)
    this.#world.move(room, person.userId, 'join', true)
    return `${person.userId} joins ${room.id}`
  }

  async #leave(): Promise<string | undefined> {
    const place = this.#pick('join', 'invite')
    if (place === undefined) return undefined
    const { room, person } = place
    await person.leave(room.id)
    this.#world.move(room, person.userId, 'leave', true)
    return `${person.userId} leaves ${room.id}`
  }

  async #invite(): Promise<string | undefined> {
    const place = this.#pick('leave', undefined)
    if (place === undefined) return undefined
    const { room, person } = place
    await this.#personOf(room.admin).invite(room.id, person)
    this.#world.move(room, person.userId, 'invite', false)
    return `${person.userId} is invited to ${room.id}`
  }

  async #remove(): Promise<string | undefined> {
    const isBan = this.#dice.chance(0.4)
    const place = this.#pick('join', 'invite')
    if (place === undefined) return undefined
    const { room, person } = place
    const path = inRoom(room.id, isBan ? '/ban' : '/kick')
    await this.#personOf(room.admin).call('POST', path, { user_id: person.userId })
    this.#world.move(room, person.userId, isBan ? 'ban' : 'leave', false)
    return `${person.userId} is ${isBan ? 'banned' : 'kicked'} from ${room.id}`
  }

  async #unban(): Promise<string | undefined> {
    const place = this.#pick('ban')
    if (place === undefined) return undefined
    const { room, person } = place
    await this.#personOf(room.admin).call('POST', inRoom(room.id, '/unban'), { user_id: person.userId })
    this.#world.move(room, person.userId, 'leave', false)
    return `${person.userId} is unbanned from ${room.id}`
  }

  async #forget(): Promise<string | undefined> {
    const place = this.#pick('leave', 'ban')
    if (place === undefined || place.room.standings.get(place.person.userId)!.isForgotten) return undefined
    const { room, person } = place
    await person.call('POST', inRoom(room.id, '/forget'), {})
    this.#world.forget(room, person.userId)
    return `${person.userId} forgets ${room.id}`
  }

  async #type(): Promise<string> {
    const { room, person } = this.#pickJoined()
    const typing = !room.typing.has(person.userId)
    const path = inRoom(room.id, `/typing/${encodeURIComponent(person.userId)}`)
    await person.call('PUT', path, typing ? { typing, timeout: 120_000 } : { typing })
    room.isTypingUnsure = false
    if (typing) room.typing.add(person.userId)
    else room.typing.delete(person.userId)
    return `${person.userId} ${typing ? 'types' : 'stops typing'} in ${room.id}`
  }

  async #read(): Promise<string | undefined> {
    const { room, person } = this.#pickJoined()
    const { chunk } = await person.call('GET', inRoom(room.id, '/messages?dir=b&limit=1'))
    const { event_id: eventId } = chunk[0]
    const kind = this.#dice.pick(['m.read', 'm.read', 'm.read.private'])
    await person.call('POST', inRoom(room.id, `/receipt/${kind}/${encodeURIComponent(eventId)}`), {})
    room.receipts.set(`${person.userId} ${kind}`, eventId)
    return `${person.userId} reads up to ${eventId} (${kind}) in ${room.id}`
  }

  async #setAccountData(): Promise<string> {
    const { phone: person } = this.#dice.pick(this.#people)
    const dice = this.#dice
    const rooms = [...this.#world.rooms.keys()]
    const room = dice.chance(0.5) ? dice.pick(rooms) : ''
    const isDirect = room === '' && dice.chance(0.5)
    const type = isDirect ? 'm.direct' : 'test.data'
    const content = isDirect ? { '@friend:elsewhere': rooms.filter(() => dice.chance(0.3)) } : { number: this.#count++ }
    const place = room === '' ? '' : `/rooms/${encodeURIComponent(room)}`
    await person.call('PUT', `/user/${encodeURIComponent(person.userId)}${place}/account_data/${type}`, content)
    this.#world.accountData.set(`${person.userId} ${room} ${type}`, content)
    return `${person.userId} sets ${type} in ${room || 'all'}`
  }

  async #sendToDevice(): Promise<string> {
    const { send, done } = this.#messageToDevice()
    await send()
    return done()
  }

  #messageToDevice(): { send: () => Promise<unknown>; done: () => string } {
    const { phone: sender } = this.#dice.pick(this.#people)
    const { phone, laptop } = this.#dice.pick(this.#people)
    const target = this.#dice.pick([phone, laptop])
    const number = this.#count++
    const messages = { [target.userId]: { [target.deviceId]: { number } } }
    return {
      send: () => sender.call('PUT', `/sendToDevice/test.message/t${number}`, { messages }),
      done: () => {
        const sent = this.#world.toDevice.get(target.deviceId)
        if (sent === undefined) this.#world.toDevice.set(target.deviceId, [number])
        else sent.push(number)
        return `message ${number} to ${target.deviceId}`
      },
    }
  }
}
