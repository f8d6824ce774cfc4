import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person, textsOf } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const NAMES = [
  ['use_state_after', 'state_after'],
  ['org.matrix.msc4222.use_state_after', 'org.matrix.msc4222.state_after'],
] as const

const LAST = `&filter=${encodeURIComponent(JSON.stringify({ room: { timeline: { limit: 1 } } }))}`

async function sharedRoom(): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat', topic: 'before' })
  await bob.join(room)
  return room
}

const topicsIn = ({ events }: Json) => events.flatMap(({ content }: Json) => content.topic ?? [])
const membershipsIn = ({ events }: Json, { userId }: Person) =>
  events.filter(({ state_key }: Json) => state_key === userId).map(({ content }: Json) => content.membership)

describe.each(NAMES)('%s', (wish, key) => {
  const ask = (person: Person, since: string | undefined, more = '') =>
    person.sync(`${since === undefined ? '' : `&since=${since}`}&${wish}=true${more}`)

  it('gives the state at the end of the timeline, in a first sync and later', async () => {
    const room = await sharedRoom()
    const first = (await ask(bob, undefined, LAST)).rooms.join[room]
    expect(topicsIn(first[key])).toEqual(['before'])
    expect(membershipsIn(first[key], bob)).toEqual(['join'])
    const since = (await bob.sync()).next_batch
    await alice.setState(room, 'm.room.topic', { topic: 'between' })
    await alice.setState(room, 'm.room.topic', { topic: 'after' })
    await alice.say(room, 'hello')
    for (const more of ['', LAST]) {
      const later = (await ask(bob, since, more)).rooms.join[room]
      expect(topicsIn(later[key])).toEqual(['after'])
      expect(Object.keys(later).filter((name) => name.includes('state'))).toEqual([key])
    }
  })

  it('gives an empty list where no state changed', async () => {
    const room = await sharedRoom()
    const since = (await bob.sync()).next_batch
    await alice.say(room, 'hello')
    expect((await ask(bob, since)).rooms.join[room][key]).toEqual({ events: [] })
  })

  it('gives the state of a room that the user was taken out of, with that, and nothing later', async () => {
    for (const act of ['kick', 'ban']) {
      const room = await sharedRoom()
      const since = (await bob.sync()).next_batch
      await alice.setState(room, 'm.room.topic', { topic: 'after' })
      await alice.call('POST', inRoom(room, `/${act}`), { user_id: bob.userId })
      await alice.setState(room, 'm.room.topic', { topic: 'later' })
      for (const more of ['', LAST]) {
        const left = (await ask(bob, since, more)).rooms.leave[room]
        expect(Object.keys(left).filter((name) => name.includes('state'))).toEqual([key])
        expect(topicsIn(left[key])).toEqual(['after'])
        expect(membershipsIn(left[key], bob)).toEqual([act === 'ban' ? 'ban' : 'leave'])
      }
    }
  })

  it('gives the leave itself where an invitation was declined, and nothing else of the room', async () => {
    const room = await alice.createRoom({ preset: 'private_chat', invite: [bob.userId] })
    await alice.say(room, 'secret')
    const since = (await bob.sync()).next_batch
    await bob.leave(room)
    const left = (await ask(bob, since)).rooms.leave[room]
    expect(membershipsIn(left[key], bob)).toEqual(['leave'])
    expect(left[key].events).toHaveLength(1)
    expect(textsOf(left.timeline.events)).toEqual([])
    expect(left.state).toBeUndefined()
  })
})

it('the stable name counts where both are given; without either, the state comes before the timeline', async () => {
  const room = await sharedRoom()
  const since = (await bob.sync()).next_batch
  await alice.setState(room, 'm.room.topic', { topic: 'after' })
  const both = NAMES.map(([wish]) => `&${wish}=true`).join('')
  expect(topicsIn((await bob.sync(`&since=${since}${both}`)).rooms.join[room].state_after)).toEqual(['after'])
  const neither = NAMES.map(([wish]) => `&${wish}=false`).join('')
  const { state, ...others } = (await bob.sync(`&since=${since}${neither}`)).rooms.join[room]
  expect(state.events).toEqual([])
  expect(Object.keys(others).filter((name) => name.includes('state'))).toEqual([])
})
