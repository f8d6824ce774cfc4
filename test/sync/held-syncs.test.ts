import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MAX_HELD_SYNCS_PER_DEVICE, MAX_HELD_SYNCS_PER_USER } from '../../src/domain/limits.ts'
import { type Answer, type Office, openOffice } from '../admin/office.ts'
import { type Account, createRoom, type Json, join, login, openApi, PASSWORD, sendText } from '../support/api.ts'
import { startServer } from '../support/server.ts'
import { IS_TWO_NODES } from '../support/two-nodes.ts'
import { waitUntil } from '../support/wait.ts'

let office: Office
let room: string
let count = 0
const enc = encodeURIComponent
/** Longer than any test here: what ends earlier was ended. */
const HELD_MS = 60_000

beforeAll(async () => {
  office = await openOffice()
})
afterAll(() => office.close())

async function levelOf(name: string): Promise<number> {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await office.server.metrics())?.[1])
}

const DISPLACED = 'hearth_ended_syncs_total\\{reason="displaced"\\}'
const WITH_SESSION = 'hearth_ended_syncs_total\\{reason="session"\\}'
const held = () => levelOf('hearth_waiting_syncs')

/** Those that were held here and are not answered yet. */
let open = 0
/** The server may count a sync for a moment after its answer, and one that begins is known by the count. */
const othersEnded = () => waitUntil('the end of other syncs', async () => (await held()) === open)
beforeEach(async () => {
  await othersEnded()
  // Of its own: who was deactivated leaves the rooms of earlier tests in the background, and that would be news.
  room = await createRoom(office.api, office.boss.token, { preset: 'public_chat' })
})

async function personInRoom(): Promise<Account> {
  const person = await office.person(`holder${++count}`)
  await join(office.api, person.token, room)
  return person
}

interface Poll {
  readonly since: string
  readonly answer: Promise<Answer>
}

/** A sync that is waiting by the time this gives it. */
async function hold({ token }: Account, since?: string): Promise<Poll> {
  const from = since ?? (await office.api.call('GET', '/sync', { token })).next_batch
  const api = openApi(office.server.baseUrl, { connections: 1 })
  await othersEnded()
  const before = open++
  const answer = api.request('GET', `/sync?timeout=${HELD_MS}&since=${from}`, { token }).finally(() => {
    open--
    return api.close()
  })
  await waitUntil('a sync that waits', async () => (await held()) > before)
  return { since: from, answer }
}

const say = (text: string) => sendText(office.api, office.boss.token, room, `say${++count}`, text)

const call = (account: Account, method: string, path: string, body: Json = {}) =>
  office.api.call(method, path, { token: account.token, body })

const proofOf = ({ userId }: Account) => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user: userId },
  password: PASSWORD,
})

const UNKNOWN = { status: 401, body: { errcode: 'M_UNKNOWN_TOKEN', error: expect.any(String) } }

/** How the session of `account` ends, while the user has another one: that was opened before, since a new device is news. */
const ENDINGS: readonly (readonly [string, (account: Account, other: Account) => Promise<unknown>, object])[] = [
  ['logout', (account) => call(account, 'POST', '/logout'), UNKNOWN],
  ['logout/all', (_, other) => call(other, 'POST', '/logout/all'), UNKNOWN],
  [
    'a password change on another device',
    (account, other) =>
      call(other, 'POST', '/account/password', {
        auth: proofOf(account),
        new_password: `${PASSWORD}!`,
      }),
    UNKNOWN,
  ],
  [
    'the removal of its device by the user',
    (account, other) =>
      call(other, 'DELETE', `/devices/${account.deviceId}`, {
        auth: proofOf(account),
      }),
    UNKNOWN,
  ],
  [
    'the removal of its device by an administrator',
    ({ userId, deviceId }) => office.call('DELETE', `/v2/users/${enc(userId)}/devices/${deviceId}`),
    UNKNOWN,
  ],
  [
    'a password that an administrator sets',
    ({ userId }) => office.call('POST', `/v1/reset_password/${enc(userId)}`, { new_password: `${PASSWORD}!` }),
    UNKNOWN,
  ],
  [
    'a login on the same device',
    ({ userId, deviceId }) =>
      office.api.call('POST', '/login', { body: { ...proofOf({ userId } as Account), device_id: deviceId } }),
    UNKNOWN,
  ],
  [
    'locking',
    ({ userId }) => office.call('PUT', `/_matrix/client/v1/admin/lock/${enc(userId)}`, { locked: true }),
    { status: 401, body: { errcode: 'M_USER_LOCKED', soft_logout: true, error: expect.any(String) } },
  ],
  ['deactivation', (account) => call(account, 'POST', '/account/deactivate', { auth: proofOf(account) }), UNKNOWN],
  [
    'deactivation by an administrator',
    ({ userId }) => office.call('POST', `/v1/deactivate/${enc(userId)}`, { erase: false }),
    UNKNOWN,
  ],
]

test.each(ENDINGS)(
  'A6: %s ends a held sync at once with 401, and nothing more is delivered',
  async (_, end, expected) => {
    const account = await personInRoom()
    const other = await login(office.api, account.userId)
    const { since, answer } = await hold(account)
    const before = await levelOf(WITH_SESSION)
    await end(account, other)
    await say('not for you')
    expect(await answer).toEqual(expected)
    expect(await levelOf(WITH_SESSION)).toBeGreaterThan(before)
    // As any request in that session is answered.
    expect(await office.api.request('GET', `/sync?since=${since}`, { token: account.token })).toEqual(expected)
  },
)

test('A6: suspension ends a held sync at once with nothing new: who is suspended goes on reading', async () => {
  const account = await personInRoom()
  const { since, answer } = await hold(account)
  await office.call('PUT', `/_matrix/client/v1/admin/suspend/${enc(account.userId)}`, { suspended: true })
  const { status, body } = await answer
  expect([status, body.next_batch, body.rooms]).toEqual([200, since, undefined])
  await say('read on')
  const next = await office.api.call('GET', `/sync?since=${since}`, { token: account.token })
  expect(next.rooms.join[room].timeline.events).toHaveLength(1)
})

test('A6: other sessions of the same user go on, hear that a device is gone, and what is new', async () => {
  const account = await personInRoom()
  const other = await login(office.api, account.userId)
  const polls = [await hold(account), await hold(other)] as const
  await call(account, 'POST', '/logout')
  expect((await polls[0].answer).status).toBe(401)
  const { status, body: shown } = await polls[1].answer
  expect([status, shown.device_lists.changed, shown.rooms.join]).toEqual([200, [account.userId], {}])
  const next = await hold(other, shown.next_batch)
  await say('still here')
  expect((await next.answer).body.rooms.join[room].timeline.events).toHaveLength(1)
})

test('A6: a renewed token ends the sync that was held with the old one, with 200: the session goes on', async () => {
  const { userId } = await personInRoom()
  const body = { ...proofOf({ userId } as Account), refresh_token: true }
  const { access_token, refresh_token, device_id } = await office.api.call('POST', '/login', { body })
  const { since, answer } = await hold({ userId, token: access_token, deviceId: device_id })
  await office.api.call('POST', '/refresh', { body: { refresh_token } })
  const { status, body: shown } = await answer
  expect([status, shown.next_batch]).toEqual([200, since])
})

test('A6: a held sync ends when its token runs out', async () => {
  let ahead = 0
  const server = await startServer({}, { clock: { now: () => Date.now() + ahead } })
  const api = openApi(server.baseUrl)
  try {
    const body = { username: 'brief', password: PASSWORD, refresh_token: true, auth: { type: 'm.login.dummy' } }
    const { access_token: token, expires_in_ms } = await api.call('POST', '/register', { body })
    const { next_batch } = await api.call('GET', '/sync', { token })
    ahead = expires_in_ms - 2_000
    const answer = await api.request('GET', `/sync?timeout=${HELD_MS}&since=${next_batch}`, { token })
    expect(answer).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN', soft_logout: true } })
  } finally {
    await api.close()
    await server.close()
  }
})

// Each node counts what it holds.
describe.skipIf(IS_TWO_NODES)('at one node', () => {
  test('A5: a device holds four syncs; one more ends the oldest with 200 and the token it came with', async () => {
    const account = await personInRoom()
    const polls: Poll[] = []
    for (let index = 0; index < MAX_HELD_SYNCS_PER_DEVICE; index++) polls.push(await hold(account, polls[0]?.since))
    await say('somewhere')
    const woken = await Promise.all(polls.map(({ answer }) => answer))
    expect(woken.map(({ body }) => body.rooms.join[room].timeline.events.length)).toEqual([1, 1, 1, 1])
    const since = woken[0]!.body.next_batch
    const first = await hold(account, since)
    for (let index = 1; index < MAX_HELD_SYNCS_PER_DEVICE; index++) await hold(account, since)
    const before = await held()
    const api = openApi(office.server.baseUrl)
    const fifth = api.request('GET', `/sync?timeout=${HELD_MS}&since=${since}`, { token: account.token })
    const { status, body } = await first.answer
    expect([status, body.next_batch, body.rooms, body.to_device.events]).toEqual([200, since, undefined, []])
    expect(await held()).toBeLessThanOrEqual(before)
    await say('for all that wait')
    expect((await fifth).body.rooms.join[room].timeline.events).toHaveLength(1)
    await api.close()
  })

  /** Polls with these tokens, all at once; what those that ended were told. */
  function pollAll(tokens: readonly string[], since: string) {
    const api = openApi(office.server.baseUrl, { connections: tokens.length })
    const ended: string[] = []
    const polls = tokens.map(async (token) => {
      const { status, body } = await api.request('GET', `/sync?timeout=${HELD_MS}&since=${since}`, { token })
      ended.push(`${status} ${body.next_batch} ${body.rooms === undefined}`)
    })
    return { ended, over: Promise.all(polls).then(() => api.close()) }
  }

  test('A5: 400 polls with one token hold no more than a device may', async () => {
    const { token } = await personInRoom()
    const { next_batch: since } = await office.api.call('GET', '/sync', { token })
    await othersEnded()
    const { ended, over } = pollAll(Array(400).fill(token), since)
    await waitUntil('syncs that were too many', () => ended.length === 400 - MAX_HELD_SYNCS_PER_DEVICE)
    expect(new Set(ended)).toEqual(new Set([`200 ${since} true`]))
    expect(await held()).toBe(MAX_HELD_SYNCS_PER_DEVICE)
    await say('to all of them')
    await over
  })

  test('A5: a user holds 64 syncs on all devices, and operators see how many were ended', async () => {
    const account = await personInRoom()
    const devices: Account[] = []
    for (let index = 0; index < MAX_HELD_SYNCS_PER_USER / 2; index++)
      devices.push(await login(office.api, account.userId))
    const { next_batch: since } = await office.api.call('GET', '/sync', { token: account.token })
    await othersEnded()
    const displaced = await levelOf(DISPLACED)
    const { ended, over } = pollAll(
      [...devices, ...devices, ...devices].map(({ token }) => token),
      since,
    )
    await waitUntil('syncs that were too many', () => ended.length === MAX_HELD_SYNCS_PER_USER / 2)
    expect(await held()).toBe(MAX_HELD_SYNCS_PER_USER)
    expect((await levelOf(DISPLACED)) - displaced).toBe(MAX_HELD_SYNCS_PER_USER / 2)
    await say('to all of them')
    await over
  })
})
