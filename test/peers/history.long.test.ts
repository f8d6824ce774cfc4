import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { RoomId } from '../../src/core/ids.ts'
import { auditRoom } from '../../src/domain/room-audit/room-audit.ts'
import { findRoomNid, getRooms } from '../../src/store/rooms/rooms.ts'
import { type Account, type Json, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger } from '../support/stranger.ts'
import { json, proxyTo, type TlsHandler, type TlsRequest } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

const SAID_BEFORE = Number(process.env.HISTORY_EVENTS ?? 500)

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let alice: Account
let bob: Account
let room: string
let sent = 0

beforeAll(async () => {
  street = openNeighbourhood({ clock: { now: () => Date.now() + (isLate ? ++late * 6_000 : 0) } })
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
})

afterAll(() => street.close())

/** Time flies. */
let isLate = false
let late = 0

const enc = encodeURIComponent

const make = async (more: object = {}) => {
  const body = { preset: 'public_chat', ...more }
  room = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
}

const join = ({ api }: Neighbour = beta, { token }: Account = bob) =>
  api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token, body: {} })

const say = ({ api }: Neighbour, { token }: Account, text: string) => sendText(api, token, room, `t${sent++}`, text)

async function sayMany(count: number, name: string): Promise<void> {
  for (let i = 0; i < count; i++) await say(alpha, alice, `${name} ${i}`)
}

const setName = (name: string) =>
  alpha.api.call('PUT', `/rooms/${enc(room)}/state/m.room.name`, { token: alice.token, body: { name } })

const page = ({ api }: Neighbour, { token }: Account, query: string) =>
  api.call('GET', `/rooms/${enc(room)}/messages?${query}`, { token })

/** All of a room's history, oldest first, turned back page by page. */
async function allOf(at: Neighbour, who: Account, limit = 50): Promise<Json[]> {
  const all: Json[] = []
  let from = ''
  for (let pages = 0; pages < 200; pages++) {
    const { chunk, end } = await page(at, who, `dir=b&limit=${limit}${from}`)
    all.push(...chunk)
    if (end === undefined) return all.reverse()
    from = `&from=${enc(end)}`
  }
  throw new Error('the pages come to no end')
}

const idsOf = (events: Json[]): string[] => events.map(({ event_id }) => event_id)
const textsOf = (events: Json[]): string[] => events.flatMap(({ content }) => content.body ?? [])

/** What a client that has just come is told: asking for more would fetch what is missing. */
async function textsAt({ api }: Neighbour, { token }: Account): Promise<string[]> {
  return textsOf((await api.call('GET', '/sync?timeout=0', { token })).rooms.join[room].timeline.events)
}

/** Answers some requests of other servers otherwise, until it is ended. */
function instead({ front }: Neighbour, isMeant: (url: string) => boolean, handler: TlsHandler): () => void {
  const honest = front.handler
  front.handler = (request, response) => (isMeant(request.url) ? handler : honest)(request, response)
  return () => {
    front.handler = honest
  }
}

/** What alpha has to say to a request. */
async function honestly({ url, headers }: TlsRequest): Promise<Json> {
  return (await fetch(alpha.server.baseUrl + url, { headers: { authorization: headers.authorization! } })).json()
}

afterEach(() => {
  for (const { front, server } of [alpha, beta]) front.handler = proxyTo(server.baseUrl)
})

const isBackfill = (url: string) => url.includes('/backfill/')
const backfillsOf = ({ front }: Neighbour) => front.requests.filter(({ url }) => isBackfill(url)).length

/** What the whole room, checked again from scratch, is found to be wrong in. */
async function verify({ server }: Neighbour): Promise<string[]> {
  const { db } = server.database
  const findings: string[] = []
  await auditRoom({
    db,
    roomNid: (await findRoomNid(db, room as RoomId))!,
    knownKeys: () => [],
    found: ({ eventId, what }) => findings.push(`${eventId ?? 'room'}: ${what}`),
    progress: () => undefined,
  })
  return findings
}

/** The version of the room's head, which everything that is kept of a room names. */
async function versionAt({ server }: Neighbour): Promise<number> {
  const nid = await findRoomNid(server.database.db, room as RoomId)
  return (await getRooms(server.database.db, [nid!]))[0]!.head_version
}

/** Messages of alice that never reach beta, and one after them that does: what is between has to be asked for. */
async function leaveGap(count: number, between = async (_i: number) => {}): Promise<void> {
  const endLoss = instead(beta, (url) => url.includes('/send/'), json({ pdus: {} }))
  for (let i = 0; i < count; i++) {
    await between(i)
    await say(alpha, alice, `lost ${i}`)
  }
  const isLast = (body: string) => body.includes(room) && body.includes(`"lost ${count - 1}"`)
  await waitUntil('the loss', () => beta.front.requests.some(({ body }) => isLast(body)))
  endLoss()
  const endSilence = instead(alpha, (url) => url.includes('/get_missing_events/'), json({ events: [] }))
  await say(alpha, alice, 'found')
  await waitUntil('the event after the gap', async () => (await textsAt(beta, bob)).includes('found'))
  endSilence()
}

describe('history from before this server came', () => {
  beforeEach(() => make())

  it('is read to its beginning, in order, each event once', async () => {
    for (let i = 0; i < SAID_BEFORE; i += 50) {
      await setName(`name ${i}`)
      await Promise.all(Array.from({ length: 50 }, (_, j) => say(alpha, alice, `before ${i + j}`)))
    }
    await join()
    const before = await beta.api.call('GET', '/sync?timeout=0', { token: bob.token })
    const there = await allOf(alpha, alice, 100)
    const begun = performance.now()
    const here = await allOf(beta, bob)
    const tookMs = Math.round(performance.now() - begun)
    expect(idsOf(here)).toEqual(idsOf(there))
    expect(textsOf(here)).toHaveLength(SAID_BEFORE)
    expect(here[0].type).toBe('m.room.create')
    const after = await beta.api.call('GET', `/sync?timeout=0&since=${before.next_batch}`, { token: bob.token })
    expect(after.rooms?.join?.[room]).toBeUndefined()
    console.info(`history: ${here.length} events from another server in ${tookMs} ms, ${backfillsOf(alpha)} requests`)
  })

  it('is there after a restart, is asked for once, and counts as unread for nobody', async () => {
    await sayMany(30, 'before')
    await join()
    const whole = await allOf(beta, bob)
    const asked = backfillsOf(alpha)
    await beta.server.restart()
    expect(idsOf(await allOf(beta, bob))).toEqual(idsOf(whole))
    expect(backfillsOf(alpha)).toBe(asked)
    const { rooms } = await beta.api.call('GET', '/sync?timeout=0', { token: bob.token })
    const { unread_notifications, timeline } = rooms.join[room]
    expect(unread_notifications).toEqual({ highlight_count: 0, notification_count: 0 })
    expect(timeline.events).toHaveLength(1)
    expect(timeline.limited).toBe(true)
  })

  it('is asked for once by two clients that turn back the pages together', async () => {
    await sayMany(20, 'before')
    await join()
    const asked = backfillsOf(alpha)
    const pages = await Promise.all([1, 2, 3].map(() => page(beta, bob, 'dir=b&limit=15')))
    for (const one of pages) expect(idsOf(one.chunk)).toEqual(idsOf(pages[0]!.chunk))
    expect(pages[0]!.chunk).toHaveLength(15)
    expect(backfillsOf(alpha)).toBe(asked + 1)
  })

  it('is shown around an event by `context`', async () => {
    const at = await say(alpha, alice, 'the middle')
    await join()
    await page(beta, bob, 'dir=b&limit=3')
    const path = `/rooms/${enc(room)}/context/${enc(at)}?limit=10`
    const [here, there] = await Promise.all([
      beta.api.call('GET', path, { token: bob.token }),
      alpha.api.call('GET', path, { token: alice.token }),
    ])
    expect(idsOf(here.events_before)).toEqual(idsOf(there.events_before))
    expect(idsOf(here.state).sort()).toEqual(idsOf(there.state).sort())
  })

  it('knows its state at every point, as the room verifies', async () => {
    await setName('first')
    await say(alpha, alice, 'under the first name')
    await setName('second')
    await say(alpha, alice, 'under the second name')
    await join()
    const here = await allOf(beta, bob, 5)
    const named = (text: string) => here.find(({ content }) => content.body === text).event_id
    for (const [text, name] of [
      ['under the first name', 'first'],
      ['under the second name', 'second'],
    ] as const) {
      const path = `/rooms/${enc(room)}/context/${enc(named(text))}?limit=0`
      const { state } = await beta.api.call('GET', path, { token: bob.token })
      expect(state.find(({ type }: Json) => type === 'm.room.name').content).toEqual({ name })
    }
    expect(await verify(beta)).toEqual([])
  })

  it('shows redacted what was redacted since', async () => {
    const id = await say(alpha, alice, 'regretted')
    const path = `/rooms/${enc(room)}/redact/${enc(id)}/r${sent++}`
    await alpha.api.call('PUT', path, { token: alice.token, body: {} })
    await join()
    const here = await allOf(beta, bob)
    const found = here.find(({ event_id }) => event_id === id)
    expect(found.content).toEqual({})
  })
})

describe('what a later joiner may not see', () => {
  it.each(['joined', 'invited'])('is not shown where history is for those %s', async (history_visibility) => {
    const initial_state = [{ type: 'm.room.history_visibility', content: { history_visibility } }]
    await make({ initial_state })
    await sayMany(5, 'before')
    await join()
    await say(alpha, alice, 'after')
    await waitUntil('what is said after', async () => (await textsAt(beta, bob)).includes('after'))
    expect(textsOf(await allOf(beta, bob))).toEqual(['after'])
  })
})

describe('a gap', () => {
  beforeEach(async () => {
    await make()
    await join()
  })

  it('in the middle is filled, in order, and told as nothing new', async () => {
    await say(alpha, alice, 'known')
    await waitUntil('what is known', async () => (await textsAt(beta, bob)).includes('known'))
    const before = await beta.api.call('GET', '/sync?timeout=0', { token: bob.token })
    await leaveGap(120)
    const { rooms, next_batch } = await beta.api.call('GET', `/sync?timeout=0&since=${before.next_batch}`, {
      token: bob.token,
    })
    const { timeline } = rooms.join[room]
    expect(textsOf(timeline.events)).toEqual(['found'])
    expect(timeline.limited).toBe(true)
    const { chunk } = await page(beta, bob, `dir=b&limit=50&from=${enc(timeline.prev_batch)}`)
    expect(textsOf(chunk)).toEqual(Array.from({ length: 50 }, (_, i) => `lost ${119 - i}`))
    expect(idsOf(await allOf(beta, bob))).toEqual(idsOf(await allOf(alpha, alice, 100)))
    const later = await beta.api.call('GET', `/sync?timeout=0&since=${next_batch}`, { token: bob.token })
    expect(later.rooms?.join?.[room]).toBeUndefined()
    const again = await beta.api.call('GET', `/sync?timeout=0&since=${before.next_batch}`, { token: bob.token })
    expect(textsOf(again.rooms.join[room].timeline.events)).toEqual(['found'])
    expect(await verify(beta)).toEqual([])
  })

  it('is left by those who go and come again, and filled as any other', async () => {
    await say(alpha, alice, 'heard')
    await waitUntil('what is heard', async () => (await textsAt(beta, bob)).includes('heard'))
    await beta.api.call('POST', `/rooms/${enc(room)}/leave`, { token: bob.token, body: {} })
    await waitUntil('the leave', async () => {
      const { joined } = await alpha.api.call('GET', `/rooms/${enc(room)}/joined_members`, { token: alice.token })
      return !(bob.userId in joined)
    })
    await sayMany(5, 'while nobody listens')
    await setName('another')
    await join()
    expect(idsOf(await allOf(beta, bob))).toEqual(idsOf(await allOf(alpha, alice, 100)))
    expect(await verify(beta)).toEqual([])
  })

  it('may hold changes of the state, and redactions of what is known', async () => {
    const known = await say(alpha, alice, 'regretted')
    await waitUntil('what is known', async () => (await textsAt(beta, bob)).includes('regretted'))
    await leaveGap(12, async (i) => {
      if (i % 3 === 0) await setName(`name ${i}`)
      const path = `/rooms/${enc(room)}/redact/${enc(known)}/r${sent++}`
      if (i === 5) await alpha.api.call('PUT', path, { token: alice.token, body: {} })
    })
    const here = await allOf(beta, bob, 4)
    expect(idsOf(here)).toEqual(idsOf(await allOf(alpha, alice, 100)))
    expect(here.find(({ event_id }) => event_id === known).content).toEqual({})
    const name = await beta.api.call('GET', `/rooms/${enc(room)}/state/m.room.name`, { token: bob.token })
    expect(name).toEqual({ name: 'name 9' })
    expect(await verify(beta)).toEqual([])
  })

  it.each([
    ['nothing', () => ({ pdus: [] })],
    ['nonsense', () => ({ pdus: 'many' })],
    ['what is no event', () => ({ pdus: [1, null, 'x', {}, []] })],
    ['forged events', (honest: Json) => ({ pdus: honest.pdus.map((pdu: Json) => ({ ...pdu, depth: pdu.depth + 1 })) })],
    [
      'events without signatures',
      (honest: Json) => ({ pdus: honest.pdus.map((pdu: Json) => ({ ...pdu, signatures: {} })) }),
    ],
    ['events that lead nowhere', (honest: Json) => ({ pdus: honest.pdus.slice(3) })],
  ])('is let be when a server answers with %s', async (_what, lie) => {
    await leaveGap(10)
    let asked = 0
    instead(alpha, isBackfill, (request, response) => {
      asked++
      void honestly(request).then((answer) => json(lie(answer))(request, response))
    })
    const texts = textsOf(await allOf(beta, bob))
    expect(texts).toEqual(['found'])
    await allOf(beta, bob)
    // Once for each of the two gaps: the other is what was before the join.
    expect(asked).toBe(2)
    expect(await verify(beta)).toEqual([])
  })

  it('makes the room another version, so that nothing is shown of it that was written before', async () => {
    await leaveGap(3)
    const before = await versionAt(beta)
    expect(textsOf(await allOf(beta, bob))).toContain('lost 0')
    expect(await versionAt(beta)).toBeGreaterThan(before)
  })

  it('holds nobody up for long, and is filled once the server answers', async () => {
    await leaveGap(10)
    let release = () => {}
    const slow = new Promise<void>((resolve) => {
      release = resolve
    })
    const honest = alpha.front.handler
    const end = instead(alpha, isBackfill, (request, response) => void slow.then(() => honest(request, response)))
    const begun = performance.now()
    const { chunk, end: next } = await page(beta, bob, 'dir=b&limit=50')
    expect(performance.now() - begun).toBeLessThan(15_000)
    expect(textsOf(chunk)).toEqual(['found'])
    // The room goes on meanwhile.
    await say(alpha, alice, 'meanwhile')
    await waitUntil('what is said meanwhile', async () => (await textsAt(beta, bob)).includes('meanwhile'))
    release()
    const rest = await page(beta, bob, `dir=b&limit=50&from=${enc(next)}`)
    expect(textsOf(rest.chunk)).toEqual(Array.from({ length: 10 }, (_, i) => `lost ${9 - i}`))
    end()
  })
})

describe('several servers', () => {
  let gamma: Neighbour
  let carol: Account

  beforeAll(async () => {
    gamma = await street.open()
    carol = await gamma.person('carol')
  })

  beforeEach(async () => {
    await make()
    await join(gamma, carol)
    await join()
    await waitUntil('bob', async () => {
      const { joined } = await gamma.api.call('GET', `/rooms/${enc(room)}/joined_members`, { token: carol.token })
      return bob.userId in joined
    })
  })

  it('are asked one after another until one has what is missing', async () => {
    await leaveGap(20)
    await waitUntil('gamma', async () => textsOf(await allOf(gamma, carol)).includes('found'))
    const asked = backfillsOf(gamma)
    instead(alpha, isBackfill, json({ pdus: [] }))
    const texts = textsOf(await allOf(beta, bob))
    expect(texts).toEqual([...Array.from({ length: 20 }, (_, i) => `lost ${i}`), 'found'])
    expect(backfillsOf(gamma)).toBeGreaterThan(asked)
  })

  it('go on talking while one of them answers slowly', async () => {
    let release = () => {}
    const slow = new Promise<void>((resolve) => {
      release = resolve
    })
    const honest = alpha.front.handler
    const isMissing = (url: string) => url.includes('/get_missing_events/')
    instead(alpha, isMissing, (request, response) => void slow.then(() => honest(request, response)))
    const endLoss = instead(beta, (url) => url.includes('/send/'), json({ pdus: {} }))
    await say(alpha, alice, 'lost on the way')
    await waitUntil('the loss', () =>
      beta.front.requests.some(({ body }) => body.includes(room) && body.includes('lost on')),
    )
    await waitUntil('gamma', async () => (await textsAt(gamma, carol)).includes('lost on the way'))
    endLoss()
    await say(alpha, alice, 'builds on what was lost')
    await waitUntil('the question', () =>
      alpha.front.requests.some(({ url }) => isMissing(url) && url.includes(enc(room))),
    )
    await say(gamma, carol, 'from somebody else')
    await waitUntil('what gamma says', async () => (await textsAt(beta, bob)).includes('from somebody else'))
    release()
    await waitUntil('what alpha says', async () => (await textsAt(beta, bob)).includes('builds on what was lost'))
    expect(textsOf(await allOf(beta, bob)).sort()).toEqual(textsOf(await allOf(alpha, alice)).sort())
    expect(await verify(beta)).toEqual([])
  })
})

describe('the pages turned forwards', () => {
  it('stay before a gap while it takes long to fill, and then go on through it', async () => {
    await make()
    await join()
    const { end: before } = await page(beta, bob, 'dir=b&limit=1')
    await leaveGap(30)
    const seen: Json[] = []
    const sizes: number[] = []
    let from = before
    while (!textsOf(seen).includes('found')) {
      // The first page ends at the gap; while the second is asked for no time is left to fill it.
      isLate = sizes.length === 1
      const { chunk, end } = await page(beta, bob, `dir=f&limit=${sizes.length === 0 ? 1 : 20}&from=${enc(from)}`)
      isLate = false
      seen.push(...chunk)
      sizes.push(chunk.length)
      expect(end).not.toBe(from)
      from = end
    }
    expect(sizes.slice(0, 2)).toEqual([1, 0])
    const there = await allOf(alpha, alice)
    expect(idsOf(seen)).toEqual(idsOf(there).slice(-seen.length))
    expect(textsOf(seen)).toContain('lost 15')
  })
})

describe('an event by its time', () => {
  beforeEach(() => make())

  const nearest = ({ api }: Neighbour, { token }: Account, ts: number, dir: string) =>
    api.call('GET', `/_matrix/client/v1/rooms/${enc(room)}/timestamp_to_event?ts=${ts}&dir=${dir}`, { token })

  /** A request waits for other servers for some seconds only: on a busy machine the next one finds what came later. */
  const findsIt = (ts: number, dir: string, shown: Json) =>
    waitUntil('beta finds the same event', async () => {
      const { event_id, origin_server_ts } = await nearest(beta, bob, ts, dir)
      return event_id === shown.event_id && origin_server_ts === shown.origin_server_ts
    })

  const around = async (id: string, limit: number) =>
    beta.api.call('GET', `/rooms/${enc(room)}/context/${enc(id)}?limit=${limit}`, { token: bob.token })

  it.each(['f', 'b'])('is found in history from before this server came, in direction %s', async (dir) => {
    await sayMany(150, 'before')
    await join()
    const there = await allOf(alpha, alice, 100)
    // Several events may be of the same millisecond: the one in question is the one that alpha names.
    const { origin_server_ts } = there[80]
    const shown = await nearest(alpha, alice, origin_server_ts, dir)
    const { event_id } = shown
    await findsIt(origin_server_ts, dir, shown)
    const index = idsOf(there).indexOf(event_id)
    const { events_before, event, end } = await around(event_id, 10)
    expect(event.event_id).toBe(event_id)
    expect(idsOf(events_before)).toEqual(idsOf(there.slice(index - 5, index)).reverse())
    const later = await page(beta, bob, `dir=f&limit=20&from=${enc(end)}`)
    expect(idsOf(later.chunk)).toEqual(idsOf(there.slice(index + 6, index + 26)))
    expect(idsOf(await allOf(beta, bob))).toEqual(idsOf(there))
    expect(await verify(beta)).toEqual([])
  })

  it('is found in a gap', async () => {
    await join()
    await leaveGap(30)
    const there = await allOf(alpha, alice, 100)
    const middle = there.find(({ content }) => content.body === 'lost 15')
    const shown = await nearest(alpha, alice, middle.origin_server_ts, 'f')
    await findsIt(middle.origin_server_ts, 'f', shown)
    expect(idsOf(await allOf(beta, bob))).toEqual(idsOf(there))
  })

  it.each([
    ['nothing', {}],
    ['nonsense', { event_id: 7, origin_server_ts: 'noon' }],
    ['an event that there is not', { event_id: `$${'A'.repeat(43)}`, origin_server_ts: 5 }],
  ])('is the nearest that is known where others answer with %s', async (_what, answer) => {
    await sayMany(2, 'before')
    await join()
    instead(alpha, (url) => url.includes('/timestamp_to_event/'), json(answer))
    const { event_id } = await nearest(beta, bob, 5, 'f')
    const { chunk } = await page(beta, bob, 'dir=f&limit=1')
    expect(event_id).toBe(chunk[0].event_id)
    const before = `/_matrix/client/v1/rooms/${enc(room)}/timestamp_to_event?ts=5&dir=b`
    const { status, body } = await beta.api.request('GET', before, { token: bob.token })
    expect([status, body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })

  it('is not told to servers that are not in the room', async () => {
    const stranger = await openStranger(street.authority)
    const uri = `/_matrix/federation/v1/timestamp_to_event/${enc(room)}?ts=${Date.now()}&dir=b`
    const { status, body } = await stranger.ask({ name: alpha.name, url: alpha.server.baseUrl }, 'GET', uri)
    expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    await stranger.close()
  })

  it('is one that the user may see', async () => {
    await make({ initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'joined' } }] })
    await sayMany(3, 'before')
    const { chunk } = await page(alpha, alice, 'dir=b&limit=1')
    await join()
    const { event_id } = await nearest(beta, bob, chunk[0].origin_server_ts, 'f')
    expect(event_id).not.toBe(chunk[0].event_id)
  })
})
