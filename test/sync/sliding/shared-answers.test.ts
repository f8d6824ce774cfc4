import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { bodiesOf, Connection, FORMS, type Request } from './connection.ts'

/** What one reader is sent of a room is sent to the others who want the same, but for what is theirs alone. */
let house: House
let alice: Person
let bob: Person
let cara: Person
let dora: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  cara = await house.person('cara')
  dora = await house.person('dora')
})
afterAll(() => house.close())

const CREATE = [['m.room.create', '']] as const

describe.each(FORMS)('readers of the same in the %s form', (form) => {
  let count = 0

  async function openRoom(request: object = {}) {
    const id = await alice.createRoom({ preset: 'public_chat', ...request })
    for (const person of [bob, cara, dora]) await person.join(id)
    await alice.say(id, 'first')
    return id
  }

  const wish = (id: string, more: object = {}): Request => ({
    rooms: { [id]: { limit: 3, state: CREATE, lazy: true, ...more } },
  })

  /** Connections of these people, at the end of the room. */
  async function settled(people: readonly Person[], request: Request): Promise<Connection[]> {
    count++
    const connections = people.map((person) => new Connection(person, form, `shared-${count}`))
    for (const connection of connections) {
      await connection.next(request)
      await connection.next(request)
    }
    return connections
  }

  const read = (connections: readonly Connection[], id: string, request: Request): Promise<Json[]> =>
    Promise.all(connections.map(async (connection) => (await connection.next(request)).rooms[id]))

  it('are sent the same events, and only the sender a transaction id', async () => {
    const id = await openRoom()
    const request = wish(id)
    const connections = await settled([bob, cara, alice, dora], request)
    await alice.say(id, 'second')
    const [ofBob, ofCara, ofAlice, ofDora] = (await read(connections, id, request)) as [Json, Json, Json, Json]
    for (const answer of [ofBob, ofCara, ofAlice, ofDora]) {
      expect(bodiesOf(answer)).toEqual(['second'])
      expect(answer).toMatchObject({
        num_live: 1,
        limited: false,
        bump_stamp: ofBob.bump_stamp,
        prev_batch: ofBob.prev_batch,
      })
    }
    const idIn = ({ timeline }: Json) => timeline[0].unsigned.transaction_id
    expect([idIn(ofBob), idIn(ofCara), idIn(ofDora)]).toEqual([undefined, undefined, undefined])
    expect(idIn(ofAlice)).toBeDefined()
    if (form === 'unstable')
      expect([ofBob, ofAlice].map((answer) => answer.notification_count)).toEqual([expect.any(Number), 0])
  })

  it('have unread counts of their own', async () => {
    if (form === 'merged') return
    const id = await openRoom()
    const request = wish(id)
    const connections = await settled([bob, cara, dora], request)
    const { timeline } = (await new Connection(cara, form, `read-${count}`).next(request)).rooms[id]
    await cara.call('POST', `/rooms/${encodeURIComponent(id)}/receipt/m.read/${timeline.at(-1).event_id}`, {})
    await alice.say(id, 'second')
    const answers = await read(connections, id, request)
    expect(answers.map((answer) => answer.notification_count)).toEqual([2, 1, 2])
  })

  it('who lacks the member who sent them is sent that too, whoever asks first', async () => {
    const id = await openRoom()
    const request = wish(id)
    for (const turn of [0, 1]) {
      await bob.say(id, `of bob ${turn}`)
      const knowing = await settled([alice, cara], request)
      const [lacking] = await settled([dora], { rooms: { [id]: { limit: 0, state: CREATE, lazy: true } } })
      const both = turn === 0 ? [...knowing, lacking!] : [lacking!, ...knowing]
      await bob.say(id, `again ${turn}`)
      const answers = await read(both, id, request)
      const membersIn = (answer: Json) => (answer.required_state ?? []).map(({ state_key }: Json) => state_key)
      for (const [index, answer] of answers.entries()) {
        expect(bodiesOf(answer)).toContain(`again ${turn}`)
        if (both[index] === lacking) expect(membersIn(answer)).toContain(bob.userId)
        else expect(membersIn(answer)).toEqual([])
      }
    }
  })

  it('are sent the state of their own that changed, whoever asks first', async () => {
    const id = await openRoom({ power_level_content_override: { events: { 'x.own': 0 } } })
    const request = wish(id, { state: [['x.own', '$ME']] })
    for (const turn of [0, 1]) {
      const connections = await settled(turn === 0 ? [bob, dora, cara] : [cara, bob, dora], request)
      await cara.setState(id, 'x.own', { turn }, cara.userId)
      for (const connection of connections) {
        const { required_state: state = [] } = (await connection.next(request)).rooms[id]
        const own = state.filter(({ type }: Json) => type === 'x.own').map(({ content }: Json) => content)
        expect(own).toEqual(connection.person.userId === cara.userId ? [{ turn }] : [])
      }
    }
  })

  it('who wants fewer events, ignores the sender or came later is sent something else', async () => {
    const id = await openRoom({
      initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'joined' } }],
    })
    const request = wish(id)
    const few = wish(id, { limit: 1 })
    const late = await house.person(`late-${form}`)
    const deaf = await house.person(`deaf-${form}`)
    await deaf.join(id)
    await deaf.call('PUT', `/user/${encodeURIComponent(deaf.userId)}/account_data/m.ignored_user_list`, {
      ignored_users: { [alice.userId]: {} },
    })
    const all = await settled([bob, cara, deaf], request)
    const [short] = await settled([dora], few)
    const [guest] = await settled([late], request)
    for (const text of ['second', 'third']) await alice.say(id, text)
    await late.join(id)
    await alice.say(id, 'fourth')
    const [ofBob, ofCara, ofDeaf] = (await read(all, id, request)) as [Json, Json, Json]
    const ofDora = (await short!.next(few)).rooms[id]
    const ofLate = (await guest!.next(request)).rooms[id]
    expect([ofBob, ofCara].map(bodiesOf)).toEqual([bodiesOf(ofBob), bodiesOf(ofBob)])
    expect(bodiesOf(ofBob).at(-1)).toBe('fourth')
    expect(bodiesOf(ofDora)).toEqual(['fourth'])
    expect(ofDora.limited).toBe(true)
    expect(bodiesOf(ofLate)).toEqual(['fourth'])
    expect(ofDeaf === undefined ? [] : bodiesOf(ofDeaf)).toEqual([])
  })
})
