import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Account, type Json, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let gamma: Neighbour
let alice: Account
let bob: Account
let carol: Account
let room: string
let sent = 0

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta, gamma] = await Promise.all([street.open(), street.open(), street.open()])
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
  carol = await gamma.person('carol')
})

afterAll(() => street.close())

const enc = encodeURIComponent

beforeEach(async () => {
  const body = { preset: 'public_chat' }
  room = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
  await join(beta, bob)
})

const join = (at: Neighbour, { token }: Account, via = alpha.name) =>
  at.api.call('POST', `/join/${enc(room)}?server_name=${enc(via)}`, { token, body: {} })

const say = (at: Neighbour, { token }: Account, text: string) => sendText(at.api, token, room, `t${sent++}`, text)

async function textsAt(at: Neighbour, { token }: Account): Promise<string[]> {
  const { chunk } = await at.api.call('GET', `/rooms/${enc(room)}/messages?dir=b&limit=100`, { token })
  return chunk.flatMap(({ content }: { content: { body?: string } }) => content.body ?? []).reverse()
}

const heard = (at: Neighbour, who: Account, text: string) =>
  waitUntil(text, async () => ((await textsAt(at, who)).includes(text) ? true : undefined))

async function membershipAt(at: Neighbour, { token }: Account, of: Account): Promise<string> {
  const path = `/rooms/${enc(room)}/state/m.room.member/${enc(of.userId)}`
  return (await at.api.call('GET', path, { token })).membership
}

describe('servers in one room', () => {
  it('hear each other, in order', async () => {
    for (let i = 0; i < 20; i++) await say(i % 2 ? beta : alpha, i % 2 ? bob : alice, `${i}`)
    await heard(beta, bob, '18')
    await heard(alpha, alice, '19')
    const own = (texts: string[], odd: number) => texts.filter((text) => Number(text) % 2 === odd).map(Number)
    for (const odd of [0, 1]) {
      const there = own(await textsAt(beta, bob), odd)
      expect(there).toEqual([...there].sort((a, b) => a - b))
      expect(own(await textsAt(alpha, alice), odd)).toEqual(there)
    }
  })

  it('are told by the one that lets a third in, and hear the third', async () => {
    await join(gamma, carol)
    await waitUntil('the join', async () =>
      (await membershipAt(beta, bob, carol).catch(() => 'none')) === 'join' ? true : undefined,
    )
    await say(gamma, carol, 'hello from gamma')
    await heard(beta, bob, 'hello from gamma')
    await heard(alpha, alice, 'hello from gamma')
    await say(beta, bob, 'hello from beta')
    await heard(gamma, carol, 'hello from beta')
  })

  it('tell a user who is put out so', async () => {
    await alpha.api.call('POST', `/rooms/${enc(room)}/kick`, { token: alice.token, body: { user_id: bob.userId } })
    await waitUntil('the kick', async () => {
      const { rooms } = await beta.api.call('GET', '/sync?timeout=0', { token: bob.token })
      return rooms?.join?.[room] === undefined ? true : undefined
    })
  })

  it('deliver what was said while the other was away, or they were away themselves', async () => {
    const { handler } = beta.front
    beta.front.handler = (_request, response) => {
      response.writeHead(502).end()
    }
    await say(alpha, alice, 'while you were out')
    await alpha.server.restart()
    beta.front.handler = handler
    await say(beta, bob, 'I am back')
    await heard(alpha, alice, 'I am back')
    await heard(beta, bob, 'while you were out')
  })

  it('pass over what the other refuses for good, and deliver what comes with it and after it', async () => {
    const { handler } = beta.front
    let refused = 0
    beta.front.handler = (request, response) => {
      const isPoisoned = request.url.includes('/send/') && request.body.includes('poison')
      if (!isPoisoned) return handler(request, response)
      refused++
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"errcode":"M_BAD_JSON","error":"no"}')
    }
    const texts = ['before it', 'poison', ...Array.from({ length: 5 }, (_, n) => `after it ${n}`)]
    await Promise.all(texts.map((text) => say(alpha, alice, text)))
    // Who is heard of is tried again at once.
    await waitUntil('what comes after it', async () => {
      await say(beta, bob, 'still here')
      const there = await textsAt(beta, bob)
      return texts.every((text) => text === 'poison' || there.includes(text))
    })
    expect(refused).toBeGreaterThanOrEqual(3)
    expect(refused).toBeLessThan(10)
    beta.front.handler = handler
    await say(alpha, alice, 'the last')
    await heard(beta, bob, 'the last')
    // It builds on the one that was passed over, which is fetched.
    await heard(beta, bob, 'poison')
  })

  it('do not wait for one room because of another that came with it', async () => {
    const [slow, quick] = [
      room,
      (await alpha.api.call('POST', '/createRoom', { token: alice.token, body: { preset: 'public_chat' } })).room_id,
    ]
    room = quick
    await join(beta, bob)
    const fronts = [alpha.front.handler, beta.front.handler] as const
    let release = () => {}
    let answer = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    alpha.front.handler = (request, response) => {
      const holds = (text: string) => request.url.includes('/send/') && request.body.includes(text)
      if (holds('it is lost')) response.writeHead(200).end('{"pdus":{}}')
      else if (holds('it is held')) void held.then(() => fronts[0](request, response))
      else fronts[0](request, response)
    }
    beta.front.handler = (request, response) => {
      const isAsked = /get_missing_events|backfill|state_ids/.test(request.url)
      void (isAsked ? answered : Promise.resolve()).then(() => fronts[1](request, response))
    }
    const sayIn = (where: string, text: string) => {
      room = where
      return say(beta, bob, text)
    }
    await sayIn(slow, 'it is lost')
    await waitUntil('its loss', () => alpha.front.requests.some(({ body }) => body.includes('it is lost')))
    await sayIn(quick, 'it is held')
    await waitUntil('its arrival', () => alpha.front.requests.some(({ body }) => body.includes('it is held')))
    await sayIn(slow, 'after what is lost')
    await sayIn(quick, 'with it')
    release()
    await heard(alpha, alice, 'with it')
    const together = alpha.front.requests.findLast(({ body }) => body.includes('with it'))!
    expect(together.body).toContain('after what is lost')
    room = slow
    expect(await textsAt(alpha, alice)).not.toContain('after what is lost')
    answer()
    await heard(alpha, alice, 'after what is lost')
    expect(await textsAt(alpha, alice)).toContain('it is lost')
    ;[alpha.front.handler, beta.front.handler] = fronts
  })

  it('see who types and who has read what', async () => {
    const eventId = await say(alpha, alice, 'read this')
    await heard(beta, bob, 'read this')
    const ephemeral = async () => {
      const { rooms } = await alpha.api.call('GET', '/sync?timeout=0', { token: alice.token })
      return (rooms?.join?.[room]?.ephemeral?.events ?? []) as { type: string; content: Json }[]
    }
    const contentOf = async (type: string) => (await ephemeral()).find((event) => event.type === type)?.content
    const types = (typing: boolean) =>
      beta.api.call('PUT', `/rooms/${enc(room)}/typing/${enc(bob.userId)}`, {
        token: bob.token,
        body: { typing, timeout: 20_000 },
      })
    await types(true)
    await waitUntil('typing', async () =>
      (await contentOf('m.typing'))?.user_ids.includes(bob.userId) ? true : undefined,
    )
    await types(false)
    await waitUntil('rest', async () =>
      ((await contentOf('m.typing'))?.user_ids ?? []).length === 0 ? true : undefined,
    )
    await beta.api.call('POST', `/rooms/${enc(room)}/receipt/m.read/${enc(eventId)}`, { token: bob.token, body: {} })
    const read = await waitUntil('the receipt', async () => (await contentOf('m.receipt'))?.[eventId]?.['m.read'])
    expect(read[bob.userId]).toEqual({ ts: expect.any(Number) })
    // A receipt in a thread goes with its thread.
    const relation = { 'm.relates_to': { rel_type: 'm.thread', event_id: eventId } }
    const reply = await alpha.api.call('PUT', `/rooms/${enc(room)}/send/m.room.message/in-thread`, {
      token: alice.token,
      body: { msgtype: 'm.text', body: 'reply', ...relation },
    })
    const path = `/rooms/${enc(room)}/receipt/m.read/${enc(reply.event_id)}`
    const unreadOf = async () => {
      const filter = enc(JSON.stringify({ room: { timeline: { unread_thread_notifications: true } } }))
      const { rooms } = await beta.api.call('GET', `/sync?timeout=0&filter=${filter}`, { token: bob.token })
      return rooms.join[room].unread_thread_notifications
    }
    const unread = await waitUntil('the unread thread', unreadOf)
    expect(unread).toEqual({ [eventId]: { notification_count: 1, highlight_count: 0 } })
    await waitUntil('the reply', async () => {
      const answer = await beta.api.request('POST', path, { token: bob.token, body: { thread_id: eventId } })
      return answer.status === 200 ? true : undefined
    })
    expect(await unreadOf()).toBeUndefined()
    const inThread = await waitUntil('the receipt in the thread', async () => {
      return (await contentOf('m.receipt'))?.[reply.event_id]?.['m.read']
    })
    expect(inThread[bob.userId]).toEqual({ ts: expect.any(Number), thread_id: eventId })
  })
})
