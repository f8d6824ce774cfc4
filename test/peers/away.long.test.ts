import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deviceMaker } from '../keys/key-maker.ts'
import { type Account, type Json, login, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import type { TlsHandler, TlsRequest } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'
import { type Device, deviceOf } from '../to-device/devices.ts'

/** More rooms and messages for the full run. */
const ROOMS = Number(process.env.AWAY_ROOMS ?? 8)
const MESSAGES = Math.ceil(Number(process.env.AWAY_EVENTS ?? 208) / ROOMS)
const NOTES = Number(process.env.AWAY_NOTES ?? 55)
const DAY_MS = 24 * 3_600_000

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let gamma: Neighbour
let alice: Device
let bob: Device
let carol: Account
let atBeta: TlsHandler
let sent = 0
let shiftMs = 0

const rooms: string[] = []
const enc = encodeURIComponent

beforeAll(async () => {
  // The days go by for all of them.
  street = openNeighbourhood({ clock: { now: () => Date.now() + shiftMs } })
  ;[alpha, beta, gamma] = await Promise.all([street.open(), street.open(), street.open()])
  alice = deviceOf(alpha.api, await alpha.person('alice'))
  bob = deviceOf(beta.api, await beta.person('bob'))
  carol = await gamma.person('carol')
  atBeta = beta.front.handler
  for (let n = 0; n < ROOMS; n++) rooms.push(await sharedRoom())
})

afterAll(() => street.close())

async function sharedRoom(): Promise<string> {
  const body = { preset: 'public_chat' }
  const { room_id: room } = await alpha.api.call('POST', '/createRoom', { token: alice.token, body })
  await beta.api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token: bob.token, body: {} })
  return room
}

const say = (room: string, text: string) => sendText(alpha.api, alice.token, room, `t${sent++}`, text)
const bobSays = (room: string, text: string) => sendText(beta.api, bob.token, room, `t${sent++}`, text)
const leave = () => {
  beta.front.handler = (_request, response) => void response.writeHead(502).end()
}
const comeBack = () => {
  beta.front.handler = atBeta
}

/** Notes that beta was given, of whatever room, in the order in which they came. */
async function textsAt(room: string): Promise<string[]> {
  const { chunk } = await beta.api.call('GET', `/rooms/${enc(room)}/messages?dir=b&limit=100`, { token: bob.token })
  return chunk.flatMap(({ content }: { content: { body?: string } }) => content.body ?? []).reverse()
}

const there = (room: string, text: string) =>
  waitUntil(`"${text}"`, async () => ((await textsAt(room)).includes(text) ? true : undefined))

/** The PDUs of each transaction that beta was sent since. */
function transactionsSince(index: number): Json[][] {
  return beta.front.requests
    .slice(index)
    .filter(({ method, url }) => method === 'PUT' && url.includes('/federation/v1/send/'))
    .map(({ body }) => JSON.parse(body).pdus)
}

/** How many requests beta had had before it came back. */
async function speaksAgain(): Promise<number> {
  await alpha.server.restart()
  const before = beta.front.requests.length
  comeBack()
  await bobSays(rooms[0]!, 'I am back')
  return before
}

async function isBackWhenWeStart(): Promise<number> {
  const restarted = alpha.server.restart()
  await waitUntil('our stop', () =>
    alpha.api.call('GET', '/_matrix/client/versions').then(
      () => false,
      () => true,
    ),
  )
  const before = beta.front.requests.length
  comeBack()
  await restarted
  return before
}

const rowOf = async (server: string) => {
  const { db } = alpha.server.database
  const [row] = await db.query<{ failures: number; retry_at: number; first_unsent: number }>(
    'SELECT failures, retry_at::float8, first_unsent::float8 FROM federation_destination WHERE server = $1',
    [server],
  )
  return row
}

describe('a server that comes back after a week', () => {
  it.each([
    ['and speaks (reliability row R8)', speaksAgain],
    ['and finds us starting (reliability row R8)', isBackWhenWeStart],
  ])('%s: gets the newest of every room, and each message to a device once', async (_how, returns) => {
    await bob.readAll()
    const { next_batch: since } = await beta.api.call('GET', '/sync?timeout=0', { token: bob.token })
    leave()
    for (let n = 0; n < MESSAGES; n++) for (const room of rooms) await say(room, `${sent} in ${room}`)
    const word = `last of ${sent}`
    const last = await Promise.all(
      rooms.map(async (room, n) => ({ room, text: `${word}: ${n}`, id: await say(room, `${word}: ${n}`) })),
    )
    for (let n = 0; n < NOTES; n++) await alice.send({ [bob.userId]: { [bob.deviceId]: { n } } })
    const other = await login(alpha.api, 'alice')
    const device_keys = deviceMaker(other).identity()
    await alpha.api.call('POST', '/keys/upload', { token: other.token, body: { device_keys } })
    await waitUntil('the note of what is owed', () => rowOf(beta.name))
    shiftMs += 7 * DAY_MS
    const before = await returns()
    await Promise.all(last.map(({ room, text }) => there(room, text)))
    const transactions = transactionsSince(before)
    const pdus = transactions.flat()
    // Of each room it was sent no more than is needed to ask for the rest.
    expect(transactions.every((some) => some.length <= 50)).toBe(true)
    expect(pdus.length).toBeLessThan(ROOMS * 3)
    const notes: number[] = []
    await waitUntil('the last note', async () => {
      notes.push(...(await bob.readAll()).map(({ n }) => n))
      return notes.length >= NOTES
    })
    expect(notes).toEqual(Array.from({ length: NOTES }, (_, n) => n))
    const { device_lists } = await beta.api.call('GET', `/sync?timeout=0&since=${since}`, { token: bob.token })
    expect(device_lists.changed).toContain(alice.userId)
    await waitUntil('nothing left to be sent', async () => (await rowOf(beta.name)) === undefined)
    for (const { room } of last) {
      const numbers = (await textsAt(room))
        .filter((text) => text.includes(' in '))
        .map((text) => Number.parseInt(text, 10))
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    }
  })

  it('is told what others said last, whose servers are away by now', async () => {
    const room = rooms[0]!
    await gamma.api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token: carol.token, body: {} })
    await sendText(gamma.api, carol.token, room, `t${sent++}`, 'hello from gamma')
    await there(room, 'hello from gamma')
    leave()
    await say(room, 'from alpha')
    await sendText(gamma.api, carol.token, room, `t${sent++}`, 'from gamma')
    await waitUntil('it at alpha', async () => {
      const path = `/rooms/${enc(room)}/messages?dir=b&limit=1`
      const { chunk } = await alpha.api.call('GET', path, { token: alice.token })
      return chunk[0].content.body === 'from gamma'
    })
    await alpha.server.restart()
    const atGamma = gamma.front.handler
    gamma.front.handler = (_request, response) => void response.writeHead(502).end()
    shiftMs += DAY_MS
    comeBack()
    await bobSays(rooms[1]!, 'back again')
    await there(room, 'from gamma')
    gamma.front.handler = atGamma
  })
})

describe('the last user of a server that is away', () => {
  it.each(['kick', 'ban'])('hears of a %s when it comes back, whatever happens to us before that', async (step) => {
    const room = await sharedRoom()
    await say(room, 'you are both here')
    await there(room, 'you are both here')
    leave()
    await say(room, 'not for long')
    await alpha.api.call('POST', `/rooms/${enc(room)}/${step}`, { token: alice.token, body: { user_id: bob.userId } })
    await say(room, 'now we are alone')
    await waitUntil('the note of what is owed', async () => {
      const rows = await alpha.server.database.db.query('SELECT FROM federation_parting WHERE server = $1', [beta.name])
      return rows.length > 0
    })
    await alpha.server.restart()
    shiftMs += 7 * DAY_MS
    const before = beta.front.requests.length
    comeBack()
    await bobSays(rooms[0]!, `back from a ${step}`)
    await waitUntil(`the ${step}`, async () => {
      const { rooms: seen } = await beta.api.call('GET', '/sync?timeout=0', { token: bob.token })
      return seen?.join?.[room] === undefined
    })
    expect(JSON.stringify(transactionsSince(before))).not.toContain('now we are alone')
    await waitUntil('nothing left of it', async () => {
      const rows = await alpha.server.database.db.query('SELECT FROM federation_parting', [])
      return rows.length === 0
    })
  })
})

describe('a server that is asked too much', () => {
  const isOurs = ({ url, body }: TlsRequest) => url.includes('/send/') && body.includes(`"origin":"${alpha.name}"`)
  const limited =
    (body: object, headers = {}): TlsHandler =>
    (request, response) => {
      if (!isOurs(request)) return atBeta(request, response)
      response.writeHead(429, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    }

  it.each([
    ['in its answer', limited({ errcode: 'M_LIMIT_EXCEEDED', error: 'slow down', retry_after_ms: 1_200 })],
    ['as a proxy says it', limited({}, { 'retry-after': '1' })],
  ])('is left alone for as long as it says, %s, and not taken for away', async (_how, handler) => {
    const times: number[] = []
    beta.front.handler = (request, response) => {
      if (isOurs(request)) times.push(performance.now())
      if (times.length === 3) comeBack()
      ;(times.length === 3 ? atBeta : handler)(request, response)
    }
    await say(rooms[0]!, `slowly ${sent}`)
    await there(rooms[0]!, `slowly ${sent - 1}`)
    expect(times).toHaveLength(3)
    for (const n of [1, 2]) expect(times[n]! - times[n - 1]!).toBeGreaterThan(950)
    expect((await rowOf(beta.name))?.failures ?? 0).toBe(0)
  })

  it('does not get away with asking for years', async () => {
    beta.front.handler = limited({ errcode: 'M_LIMIT_EXCEEDED', error: 'never', retry_after_ms: 1e13 })
    await say(rooms[0]!, 'for years')
    const row = await waitUntil('the note', async () =>
      (await rowOf(beta.name))?.retry_at ? rowOf(beta.name) : undefined,
    )
    expect(row!.failures).toBe(0)
    expect(row!.retry_at - (Date.now() + shiftMs)).toBeLessThanOrEqual(3_600_000)
    comeBack()
    shiftMs += 3_600_000
    await alpha.server.restart()
    await there(rooms[0]!, 'for years')
  })
})
