import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PUSH_PACE } from '../../src/domain/limits/pushers.ts'
import { type Account, type Api, createRoom, type Json, join, openApi, register } from '../support/api.ts'
import { createAuthority } from '../support/certificate.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { bodiesOf, setPusher, startGateway, TAKES_ALL, type TestGateway } from './gateway.ts'

const { burst, everyMs } = PUSH_PACE
const LAST = 'That was all.'

let gateway: TestGateway
let server: TestServer
let api: Api
let alice: Account
let bob: Account
/** Is told of last words alone. What came before them has reached the pushers of all, when they reach carol. */
let carol: Account
let room: string
let now = Date.now()
let serial = 0

beforeAll(async () => {
  const authority = createAuthority()
  gateway = await startGateway(authority)
  // Time stands still between the steps of a test.
  server = await startServer({ outbound: { ca_file: authority.file } }, { clock: { now: () => now } })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  carol = await register(api, 'carol')
  await setPusher(api, carol, gateway, 'carol')
  const none = { conditions: [], actions: [] }
  await api.call('PUT', '/pushrules/global/override/none', { token: carol.token, body: none })
  const last = { conditions: [{ kind: 'event_match', key: 'content.body', pattern: LAST }], actions: ['notify'] }
  await api.call('PUT', '/pushrules/global/override/last', { token: carol.token, body: last })
})

afterAll(async () => {
  await api?.close()
  await server?.close()
  await gateway?.close()
  gateway?.authority.remove()
})

/** Each test has a user, who has used up a burst, and a room of its own. */
beforeEach(async () => {
  gateway.behave(TAKES_ALL)
  now += 60_000
  serial += 1
  bob = await register(api, `bob${serial}`)
  room = await newRoom()
  await setPusher(api, bob, gateway, bob.userId)
  for (let count = 0; count < burst; count++) await say(`${count}`)
  await gateway.until(bob.userId, burst)
})

async function newRoom(): Promise<string> {
  const made = await createRoom(api, alice.token, { preset: 'public_chat' })
  await join(api, bob.token, made)
  await join(api, carol.token, made)
  return made
}
let sent = 0
async function say(body: string, { where = room, ...more }: { where?: string; [key: string]: unknown } = {}) {
  const path = `/rooms/${encodeURIComponent(where)}/send/m.room.message/t${sent++}`
  return (await api.call('PUT', path, { token: alice.token, body: { msgtype: 'm.text', body, ...more } })).event_id
}
const mention = () => ({ 'm.mentions': { user_ids: [bob.userId] } })
const redact = (id: string) =>
  api.call('PUT', `/rooms/${encodeURIComponent(room)}/redact/${encodeURIComponent(id)}/r${sent++}`, {
    token: alice.token,
    body: {},
  })
const read = (id: string, body: Json = {}) =>
  api.call('POST', `/rooms/${encodeURIComponent(room)}/receipt/m.read/${encodeURIComponent(id)}`, {
    token: bob.token,
    body,
  })

/** Says the last word, and waits until all that was said waits for its turn. */
async function end(where = room): Promise<void> {
  const before = gateway.of('carol').length
  await say(LAST, { where })
  await gateway.until('carol', before + 1)
}
/** The next notifications of bob, while time goes on for so many turns. */
async function turns(count: number): Promise<Json[]> {
  const before = gateway.of(bob.userId).length
  for (let turn = 1; turn <= count; turn++) {
    now += everyMs
    await gateway.until(bob.userId, before + turn)
  }
  return gateway.of(bob.userId).slice(before)
}

describe('at more than the pace of a phone', () => {
  it('the newest of a room stands for those before it, and counts them', async () => {
    for (let count = 0; count < 20; count++) await say(`more ${count}`)
    await end()
    expect(gateway.of(bob.userId)).toHaveLength(burst)
    const [found, ...others] = await turns(1)
    expect(others).toEqual([])
    expect([found.content.body, found.counts]).toEqual([LAST, { unread: burst + 21 }])
    // Whoever reads then is told of the badge, and of nothing else.
    await read(found.event_id)
    now += 60_000
    const [counts] = (await gateway.until(bob.userId, burst + 2)).slice(burst + 1)
    expect(counts).toMatchObject({ counts: { unread: 0 } })
    expect(counts.content).toBeUndefined()
  })

  it('each mention comes at once and on its own, after what came before it', async () => {
    for (let count = 0; count < 5; count++) await say(`before ${count}`)
    for (let count = 0; count < 3; count++) await say(`bob ${count}`, mention())
    const mentions = (await gateway.until(bob.userId, burst + 3)).slice(burst)
    expect(bodiesOf(mentions)).toEqual(['bob 0', 'bob 1', 'bob 2'])
    expect(mentions.map(({ prio, devices }) => [prio, devices[0].tweaks.highlight])).toEqual(
      Array.from({ length: 3 }, () => ['high', true]),
    )
    await end()
    expect(bodiesOf(await turns(1))).toEqual([LAST])
  })

  it('no room keeps another waiting, and the order is that of the rooms', async () => {
    const other = await newRoom()
    for (let count = 0; count < 5; count++) {
      await say(`here ${count}`)
      await say(`there ${count}`, { where: other })
    }
    await end()
    expect(bodiesOf(await turns(2))).toEqual(['there 4', LAST])
    for (let count = 5; count < 10; count++) {
      await say(`there ${count}`, { where: other })
      await say(`here ${count}`)
    }
    await end(other)
    expect(bodiesOf(await turns(2))).toEqual(['here 9', LAST])
  })

  it('the badge counts what waits of other rooms, also in the place of another', async () => {
    const [one, two, three] = [await newRoom(), await newRoom(), await newRoom()]
    await say('one', { where: one })
    await say('two', { where: two })
    await end(three)
    const [first] = await turns(1)
    expect([first.content.body, first.counts]).toEqual(['one', { unread: burst + 3 }])
    await end(three)
    const [second] = await turns(1)
    expect([second.content.body, second.counts]).toEqual(['two', { unread: burst + 4 }])
    expect(bodiesOf(await turns(1))).toEqual([LAST])
  })

  it('what a redacted one stood for is told of', async () => {
    await say('to be read')
    const spam: string[] = []
    for (let count = 0; count < 5; count++) spam.push(await say(`spam ${count}`))
    await end()
    const last = gateway.of('carol').at(-1).event_id
    for (const id of [...spam, last]) await redact(id)
    expect(bodiesOf(await turns(1))).toEqual(['to be read'])
    expect(gateway.of(bob.userId).at(-1).counts).toEqual({ unread: burst + 1 })
  })

  it('what an event stood for that was read is sent, if it is in a thread that was not read', async () => {
    const root = await say('the root')
    await say('in a thread', { 'm.relates_to': { rel_type: 'm.thread', event_id: root } })
    await say('in the main timeline')
    await end()
    const last = gateway.of('carol').at(-1).event_id
    await read(last, { thread_id: 'main' })
    expect(bodiesOf(await turns(1))).toEqual(['in a thread'])
    expect(gateway.of(bob.userId).at(-1).counts).toEqual({ unread: 1 })
  })

  it('a restart leaves out nothing of what a gateway refused, also if that is due when it starts', async () => {
    const isRefused = ({ devices }: Json) => devices[0].pushkey === bob.userId
    gateway.behave((notification) => (isRefused(notification) ? 502 : { rejected: [] }))
    now += 60_000
    await say('refused')
    await waitUntil('an attempt', () =>
      gateway.requests.some(({ notification }) => notification.content?.body === 'refused'),
    )
    await end()
    const restarting = server.restart()
    now += 60_000
    await restarting
    gateway.behave(TAKES_ALL)
    await waitUntil('both', () => {
      // Again and again: an attempt that was refused may be on its way still, and the pause after it begins only then.
      now += 60_000
      return gateway.of(bob.userId).length >= burst + 2
    })
    expect(bodiesOf(gateway.of(bob.userId)).slice(burst)).toEqual(['refused', LAST])
  })

  it('a restart leaves nothing out', async () => {
    const texts = Array.from({ length: 5 }, (_, count) => `kept ${count}`)
    for (const text of texts) await say(text)
    await end()
    expect(gateway.of(bob.userId)).toHaveLength(burst)
    await server.restart()
    // The pace begins anew.
    const found = bodiesOf(await gateway.until(bob.userId, burst + 6)).slice(burst)
    expect(found).toEqual([...texts, LAST])
  })
})
