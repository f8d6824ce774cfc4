import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, openHouse, type Person } from '../rooms/people.ts'

const INVITE = 'org.matrix.msc4075.rtc.invite'
const NOTIFICATION = 'org.matrix.msc4075.rtc.notification'

let house: House
let alice: Person
let bob: Person
let carol: Person
let room: string
let sent = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  carol = await house.person('carol')
  room = await alice.createRoom({ preset: 'public_chat' })
  for (const person of [bob, carol]) await person.join(room)
})
afterAll(() => house.close())

async function ring(type: string, mentions: object): Promise<void> {
  const content = { 'm.mentions': mentions, sender_ts: Date.now(), lifetime: 30_000, notification_type: 'ring' }
  await alice.call('PUT', `/rooms/${encodeURIComponent(room)}/send/${type}/r${sent++}`, content)
}

async function countsOf(person: Person): Promise<[number, number]> {
  const { rooms } = await person.sync()
  const { notification_count, highlight_count } = rooms.join[room].unread_notifications
  return [notification_count, highlight_count]
}

it('calls of groups count for those whom they ring, in memory and after a restart', async () => {
  await ring(INVITE, { user_ids: [bob.userId] })
  expect([await countsOf(bob), await countsOf(carol)]).toEqual([
    [1, 0],
    [0, 0],
  ])
  await ring(NOTIFICATION, { user_ids: [bob.userId] })
  await ring(INVITE, { room: true })
  await ring(INVITE, {})
  const expected = [
    [3, 1],
    [1, 0],
  ]
  expect([await countsOf(bob), await countsOf(carol)]).toEqual(expected)
  await house.restart()
  expect([await countsOf(bob), await countsOf(carol)]).toEqual(expected)
})
