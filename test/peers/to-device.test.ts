import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { login } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'
import { waitUntil } from '../support/wait.ts'
import { type Device, deviceOf } from '../to-device/devices.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let stranger: Stranger
let alice: Device
let bob: Device
let sent = 0

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  stranger = await openStranger(street.authority)
  alice = deviceOf(alpha.api, await alpha.person('alice'))
  bob = deviceOf(beta.api, await beta.person('bob'))
})

afterAll(async () => {
  await stranger.close()
  await street.close()
})

const toBob = async (n: number) => {
  const { status } = await alice.send({ [bob.userId]: { [bob.deviceId]: { n } } })
  expect(status).toBe(200)
}

/** What arrives until a number does. */
async function numbersUpTo(last: number, device = bob): Promise<number[]> {
  const numbers: number[] = []
  await waitUntil(`number ${last}`, async () => {
    numbers.push(...(await device.readAll()).map(({ n }) => n))
    return numbers.includes(last) ? true : undefined
  })
  return numbers
}

const count = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** What alpha keeps for others until they take it. */
async function kept(): Promise<number | undefined> {
  const [row] = await alpha.server.database.db.query<{ n: number }>('SELECT count(*)::int AS n FROM federation_edu')
  return row?.n
}

/** A transaction of the stranger with a message for bob. */
function transaction(content: JsonObject) {
  const edus = [{ edu_type: 'm.direct_to_device', content }]
  const body = { origin: stranger.name, origin_server_ts: Date.now(), pdus: [], edus }
  const to = { name: beta.name, url: beta.server.baseUrl }
  return stranger.ask(to, 'PUT', `/_matrix/federation/v1/send/s${sent++}`, { body })
}

const messageOf = (n: number, changes: JsonObject = {}): JsonObject => ({
  sender: `@mal:${stranger.name}`,
  type: 'm.test',
  message_id: `m${n}`,
  messages: { [bob.userId]: { [bob.deviceId]: { n } } },
  ...changes,
})

describe('messages to devices of another server', () => {
  it('arrive once and in order', async () => {
    for (const n of count(1, 20)) await toBob(n)
    expect(await numbersUpTo(20)).toEqual(count(1, 20))
  })

  it('to * arrive at every device, and nowhere else', async () => {
    const second = deviceOf(beta.api, await login(beta.api, 'bob'))
    await second.sync()
    await alice.send({ [bob.userId]: { '*': { n: 30 } }, [`@nobody:${beta.name}`]: { '*': { n: 31 } } })
    expect(await numbersUpTo(30)).toEqual([30])
    expect(await numbersUpTo(30, second)).toEqual([30])
  })

  it('wait while the other server is away, over restarts of both', async () => {
    const { handler } = beta.front
    beta.front.handler = (_request, response) => {
      response.writeHead(502).end()
    }
    for (const n of count(40, 44)) await toBob(n)
    await alpha.server.restart()
    for (const n of count(45, 160)) await toBob(n)
    await beta.server.restart()
    await alpha.server.restart()
    beta.front.handler = handler
    await beta.api.call('GET', `/profile/${alice.userId}`, { token: bob.token })
    expect(await numbersUpTo(160)).toEqual(count(40, 160))
    await waitUntil('nothing kept', async () => ((await kept()) === 0 ? true : undefined))
  })

  it('come once when the answer to a transaction is lost and its sender begins anew', async () => {
    const { handler } = beta.front
    let taken = 0
    beta.front.handler = (request, response) => {
      if (!request.url.includes('/send/')) return handler(request, response)
      taken++
      handler(request, Object.create(response, { end: { value: () => response.destroy() } }))
    }
    await toBob(200)
    await waitUntil('the first try', async () => (taken > 0 ? true : undefined))
    expect(await numbersUpTo(200)).toEqual([200])
    expect(await kept()).toBe(1)
    await alpha.server.restart()
    beta.front.handler = handler
    await toBob(201)
    expect(await numbersUpTo(201)).toEqual([201])
  })

  it('are known when they come again, in the same transaction or another, also at once and after a restart', async () => {
    await Promise.all([1, 2, 3, 4].map(() => transaction(messageOf(300))))
    await beta.server.restart()
    await transaction(messageOf(300))
    await transaction(messageOf(301))
    expect(await numbersUpTo(301)).toEqual([300, 301])
  })

  it.each([
    ['another server', { sender: '@alice:elsewhere.test' }],
    ['a user of the receiver', { sender: '@bob:localhost' }],
    ['nobody', { sender: 'mal' }],
    ['somebody, without an id', { message_id: 7 }],
    ['somebody, with a long id', { message_id: 'x'.repeat(33) }],
    ['somebody, without a type', { type: null }],
    ['somebody, of a type that cannot be', { type: 'a\0b' }],
    ['somebody, to a list', { messages: [1] }],
    ['somebody, to no object', { messages: { '@bob:x': 3, x: {} } }],
  ])('said to be by %s are passed over', async (_, changes) => {
    const n = 400 + sent
    const { status } = await transaction(messageOf(n, { message_id: `b${n}`, ...changes }))
    expect(status).toBe(200)
    await transaction(messageOf(n + 1, { message_id: `g${n}` }))
    expect(await numbersUpTo(n + 1)).toEqual([n + 1])
  })
})
