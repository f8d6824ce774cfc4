import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Account, Json } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let alice: Account
let bob: Account
let sent = 0

beforeAll(async () => {
  street = openNeighbourhood()
  alpha = await street.open()
  beta = await street.open()
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
})
afterAll(() => street.close())

const enc = encodeURIComponent

async function send(at: Neighbour, { token }: Account, room: string, content: object): Promise<string> {
  const path = `/rooms/${enc(room)}/send/m.room.message/${++sent}`
  return (await at.api.call('PUT', path, { token, body: { msgtype: 'm.text', body: 'x', ...content } })).event_id
}

const reply = (event_id: string) => ({ 'm.relates_to': { rel_type: 'm.thread', event_id } })

async function threadAt(at: Neighbour, { token }: Account, room: string, root: string): Promise<Json> {
  const { status, body } = await at.api.request('GET', `/rooms/${enc(room)}/event/${enc(root)}`, { token })
  return status === 200 ? body.unsigned['m.relations']?.['m.thread'] : undefined
}

test('a thread is the same on both servers, also where its root came after its replies', async () => {
  const request = { preset: 'public_chat', room_alias_name: 'threads' }
  const { room_id: room } = await alpha.api.call('POST', '/createRoom', { token: alice.token, body: request })
  const root = await send(alpha, alice, room, {})
  for (let count = 0; count < 30; count++) await send(alpha, alice, room, {})
  const early = await send(alpha, alice, room, reply(root))
  await beta.api.call('POST', `/join/${enc(`#threads:${alpha.name}`)}`, { token: bob.token, body: {} })
  const last = await send(alpha, alice, room, reply(root))
  const edit = await send(alpha, alice, room, {
    'm.relates_to': { rel_type: 'm.replace', event_id: early },
    'm.new_content': { msgtype: 'm.text', body: 'y' },
  })
  await waitUntil('beta to have the root', async () => {
    const { token } = bob
    let from: string | undefined
    for (let page = 0; page < 10; page++) {
      const at = from === undefined ? '' : `&from=${from}`
      const { chunk, end } = await beta.api.call('GET', `/rooms/${enc(room)}/messages?dir=b&limit=20${at}`, { token })
      if (chunk.some(({ event_id }: Json) => event_id === root)) return true
      if (end === undefined) return false
      from = end
    }
    return false
  })
  for (const [at, who] of [
    [alpha, alice],
    [beta, bob],
  ] as const) {
    await waitUntil(`${who.userId} to see both replies`, async () => {
      const thread = await threadAt(at, who, room, root)
      return thread?.count === 2 && thread.latest_event.event_id === last
    })
  }
  for (const [at, { token }] of [
    [alpha, alice],
    [beta, bob],
  ] as const) {
    const path = `/_matrix/client/v1/rooms/${enc(room)}/relations/${enc(root)}?recurse=true&limit=10`
    const related = await waitUntil('the edit', async () => {
      const { chunk } = await at.api.call('GET', path, { token })
      const ids: string[] = chunk.map(({ event_id }: Json) => event_id)
      return ids.includes(edit) && ids
    })
    expect(related).toEqual([edit, last, early])
  }
  const list = await beta.api.call('GET', `/_matrix/client/v1/rooms/${enc(room)}/threads`, { token: bob.token })
  expect(list.chunk.map(({ event_id }: Json) => event_id)).toContain(root)
})
