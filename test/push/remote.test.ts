import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Account, createRoom, join, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { bodiesOf, setPusher, startGateway, type TestGateway } from './gateway.ts'

let street: Neighbourhood
let gateway: TestGateway
let alpha: Neighbour
let beta: Neighbour
let alice: Account
let bob: Account
let room: string

beforeAll(async () => {
  street = openNeighbourhood()
  gateway = await startGateway(street.authority)
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
  await setPusher(beta.api, bob, gateway, 'bob')
  room = await createRoom(alpha.api, alice.token, { preset: 'public_chat', name: 'Kitchen' })
})

afterAll(async () => {
  await gateway.close()
  await street.close()
})

it('an invitation of another server notifies the invited user, with the name that it shows', async () => {
  const path = `/rooms/${encodeURIComponent(room)}/invite`
  await alpha.api.call('POST', path, { token: alice.token, body: { user_id: bob.userId } })
  const [found] = await gateway.until('bob', 1)
  expect(found).toMatchObject({
    ...{ room_id: room, type: 'm.room.member', sender: alice.userId, user_is_target: true, counts: { unread: 1 } },
    ...{ room_name: 'Kitchen', prio: 'high', content: { membership: 'invite' } },
  })
  expect(found.event_id).toMatch(/^\$/)
})

it('events of another server notify, and those from before the join, which are fetched later, do not', async () => {
  await sendText(alpha.api, alice.token, room, 'before', 'before')
  await join(beta.api, bob.token, room)
  const messages = `/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=100`
  const { chunk } = await beta.api.call('GET', messages, { token: bob.token })
  expect(bodiesOf(chunk)).toContain('before')
  await sendText(alpha.api, alice.token, room, 'after', 'after')
  const found = await gateway.until('bob', 2)
  expect(bodiesOf(found.filter(({ type }) => type === 'm.room.message'))).toEqual(['after'])
})
