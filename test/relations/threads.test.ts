import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'
import { edit, pagesOf, react, redact, reply, threadsAt } from './people.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

async function roomOfBoth(): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  return room
}

const idsIn = ({ chunk }: Json): string[] => chunk.map(({ event_id }: Json) => event_id)

describe('the threads of a room', () => {
  it('are listed by their newest reply, in pages, each with its bundle', async () => {
    const room = await roomOfBoth()
    const roots: string[] = []
    for (let number = 0; number < 7; number++) roots.push(await alice.say(room, `root ${number}`))
    for (const root of roots) await reply(bob, room, root)
    const last = await reply(alice, room, roots[2]!, 'newest')
    const order = [roots[2], ...roots.toReversed().filter((root) => root !== roots[2])]
    expect(await pagesOf(bob, threadsAt(room, '?limit=3'))).toEqual(order)
    const { chunk } = await bob.call('GET', threadsAt(room, '?include=all&limit=1'))
    expect(chunk[0].unsigned['m.relations']['m.thread']).toMatchObject({
      count: 2,
      current_user_participated: true,
      latest_event: { event_id: last, room_id: room, content: { body: 'newest' } },
    })
  })

  it('in which a user took part are whole pages of them', async () => {
    const room = await roomOfBoth()
    const mine: string[] = []
    for (let number = 0; number < 12; number++) {
      const root = await alice.say(room, `root ${number}`)
      await reply(alice, room, root)
      if (number % 4 !== 0) continue
      await reply(bob, room, root)
      mine.push(root)
    }
    const own = await bob.say(room, 'own root')
    await reply(alice, room, own)
    const expected = [own, ...mine.toReversed()]
    expect(await pagesOf(bob, threadsAt(room, '?include=participated&limit=2'))).toEqual(expected)
    const first = await bob.call('GET', threadsAt(room, '?include=participated&limit=3'))
    expect(idsIn(first)).toEqual(expected.slice(0, 3))
  })

  it('step back when a reply is redacted, and are gone without replies (S#14248)', async () => {
    const room = await roomOfBoth()
    const [older, newer] = [await alice.say(room, 'older'), await alice.say(room, 'newer')]
    await reply(bob, room, older)
    const only = await reply(bob, room, newer)
    const again = await reply(bob, room, older)
    const listed = async () => idsIn(await alice.call('GET', threadsAt(room)))
    expect(await listed()).toEqual([older, newer])
    await redact(bob, room, again)
    expect(await listed()).toEqual([newer, older])
    await redact(bob, room, only)
    expect(await listed()).toEqual([older])
    await reply(bob, room, newer)
    expect(await listed()).toEqual([newer, older])
  })

  it('are made by replies alone: not by edits, reactions or replies to other events', async () => {
    const room = await roomOfBoth()
    const message = await alice.say(room, 'message')
    await edit(alice, room, message)
    await react(bob, room, message)
    expect(await alice.call('GET', threadsAt(room))).toEqual({ chunk: [] })
  })

  it('keep a redacted root', async () => {
    const room = await roomOfBoth()
    const root = await alice.say(room, 'root')
    await reply(bob, room, root)
    await redact(alice, room, root)
    const { chunk } = await bob.call('GET', threadsAt(room))
    expect(chunk).toMatchObject([
      { event_id: root, content: {}, unsigned: { 'm.relations': { 'm.thread': { count: 1 } } } },
    ])
  })

  it('are shown to who may read the room', async () => {
    const carol = await house.person('carol')
    const closed = await alice.createRoom()
    expect(await carol.ask('GET', threadsAt(closed))).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    for (const query of ['?from=x', '?limit=0', '?include=none']) {
      expect(await alice.ask('GET', threadsAt(closed, query))).toMatchObject({
        status: 400,
        body: { errcode: 'M_INVALID_PARAM' },
      })
    }
  })
})
