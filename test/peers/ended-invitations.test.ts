import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Account, Json } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { proxyTo, type TlsHandler } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

const enc = encodeURIComponent

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let alice: Account
let bob: Account
let room: string
let people = 0

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  alice = await alpha.person('alice')
})

afterAll(() => street.close())

beforeEach(async () => {
  bob = await beta.person(`bob${people++}`)
  const initial_state = [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }]
  room = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body: { initial_state } })).room_id
})

afterEach(() => {
  alpha.front.handler = proxyTo(alpha.server.baseUrl)
  beta.front.handler = proxyTo(beta.server.baseUrl)
})

const act = (at: Neighbour, { token }: Account, what: string, body: object = {}) =>
  at.api.call('POST', `/rooms/${enc(room)}/${what}`, { token, body })

async function sectionOf(name: 'knock' | 'invite' | 'leave'): Promise<Json> {
  const filter = enc(JSON.stringify({ room: { include_leave: true } }))
  return (await beta.api.call('GET', `/sync?timeout=0&filter=${filter}`, { token: bob.token })).rooms?.[name]?.[room]
}

const comes = (name: 'knock' | 'invite' | 'leave') =>
  waitUntil(`the ${name}`, async () => (await sectionOf(name)) !== undefined)

const knock = () => beta.api.call('POST', `/knock/${enc(room)}?via=${enc(alpha.name)}`, { token: bob.token, body: {} })

const atAlpha = async (): Promise<Json> => {
  const path = `/rooms/${enc(room)}/state/m.room.member/${enc(bob.userId)}?format=event`
  return alpha.api.call('GET', path, { token: alice.token })
}

/** The event that ended it, as bob's clients get it. */
async function end(): Promise<Json> {
  const { timeline } = await sectionOf('leave')
  expect(timeline.events).toHaveLength(1)
  return timeline.events[0]
}

/** What every event of a timeline has, and nothing of how this server keeps it. */
function expectWellFormed(event: Json, sender: string): void {
  expect(event).toMatchObject({
    ...{ type: 'm.room.member', state_key: bob.userId, sender, content: { membership: 'leave' } },
    ...{ event_id: expect.stringMatching(/^\$/), origin_server_ts: expect.any(Number), unsigned: expect.any(Object) },
  })
}

/** Lets what asks for a path through, and keeps the answer until `go`. */
function holdAnswer(at: Neighbour, path: string): { readonly isAsked: () => boolean; readonly go: () => void } {
  const pass = proxyTo(at.server.baseUrl)
  let asked = false
  let go = (): void => {}
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const handler: TlsHandler = (request, response) => {
    if (!request.url.includes(path)) return pass(request, response)
    fetch(at.server.baseUrl + request.url, {
      method: request.method,
      headers: { authorization: request.headers.authorization ?? '', 'content-type': 'application/json' },
      body: request.body,
    }).then(async (answer) => {
      const text = await answer.text()
      asked = true
      await gate
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
    })
  }
  at.front.handler = handler
  return { isAsked: () => asked, go: () => go() }
}

describe('the end of an invitation of another server', () => {
  beforeEach(async () => {
    await act(alpha, alice, 'invite', { user_id: bob.userId })
    await comes('invite')
  })

  test('B4: declined, comes down as the well-formed event that the room has', async () => {
    await act(beta, bob, 'leave', { reason: 'no time' })
    const event = await end()
    expectWellFormed(event, bob.userId)
    const { event_id, content } = await atAlpha()
    expect([event.event_id, event.content]).toEqual([event_id, content])
  })

  test('B4: rescinded, comes down as the well-formed event that the room has', async () => {
    await act(alpha, alice, 'kick', { user_id: bob.userId, reason: 'a mistake' })
    await comes('leave')
    const event = await end()
    expectWellFormed(event, alice.userId)
    expect(event.event_id).toBe((await atAlpha()).event_id)
  })

  test('B4: declined while no server of the room answers, comes down as a well-formed event too', async () => {
    alpha.front.handler = (_, response) => void response.writeHead(503).end()
    await act(beta, bob, 'leave')
    expectWellFormed(await end(), bob.userId)
  })

  test('B4: is told the same to an incremental sync, also after a restart', async () => {
    const { next_batch: since } = await beta.api.call('GET', '/sync?timeout=0', { token: bob.token })
    await act(beta, bob, 'leave')
    const shown = async () => {
      const { rooms } = await beta.api.call('GET', `/sync?timeout=0&since=${since}`, { token: bob.token })
      const { unsigned: _, ...event } = rooms.leave[room].timeline.events[0]
      return event
    }
    const before = await shown()
    expect(before.event_id).toBe((await atAlpha()).event_id)
    await beta.server.restart()
    expect(await shown()).toEqual(before)
  })

  test('B4: that comes late leaves a newer invitation alone', async () => {
    const pass = proxyTo(beta.server.baseUrl)
    const late: Parameters<TlsHandler>[] = []
    let isHeld = true
    beta.front.handler = (...call) => (isHeld && call[0].url.includes('/send/') ? void late.push(call) : pass(...call))
    await act(alpha, alice, 'kick', { user_id: bob.userId })
    await waitUntil('the kick is on its way', async () => late.length > 0)
    await act(alpha, alice, 'invite', { user_id: bob.userId, reason: 'again' })
    isHeld = false
    const [[request, response]] = late as [Parameters<TlsHandler>]
    const isTaken = new Promise((resolve) => response.on('close', resolve))
    pass(request, response)
    await isTaken
    const { invite_state } = await sectionOf('invite')
    expect(invite_state.events.at(-1).content).toMatchObject({ membership: 'invite', reason: 'again' })
    expect(await sectionOf('leave')).toBeUndefined()
  })
})

describe('the end of an old knock', () => {
  test('B4: told while the user knocks again, leaves the new knock', async () => {
    await knock()
    const held = holdAnswer(alpha, '/send_leave/')
    const leaving = act(beta, bob, 'leave')
    await waitUntil('the room has taken the leave', async () => held.isAsked())
    await knock()
    held.go()
    await leaving
    expect((await atAlpha()).content.membership).toBe('knock')
    expect(await sectionOf('knock')).toBeDefined()
    expect(await sectionOf('leave')).toBeUndefined()
  })
})
