import { afterAll, beforeAll, expect, test } from 'vitest'
import { Dice } from '../federation/dice.ts'
import { type Account, createRoom, register, sendText } from '../support/api.ts'
import { createAuthority } from '../support/certificate.ts'
import { type House, openHouse } from '../support/house.ts'
import { type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { json, startTlsServer } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

/** Half of these by each of two users, and when whom is killed; `CRASH_MESSAGES=2000 CRASH_KILLS=6 CRASH_SEED=7` for the whole. */
const MESSAGES = Number(process.env.CRASH_MESSAGES ?? 120)
const KILLS = Number(process.env.CRASH_KILLS ?? 2)
const SEED = Number(process.env.CRASH_SEED ?? 1)

let street: Neighbourhood
const houses: House[] = []

beforeAll(async () => {
  street = openNeighbourhood()
  houses.push(...(await Promise.all([openHouse(street.authority), openHouse(street.authority)])))
})

afterAll(async () => {
  for (const house of houses) await house.close()
  await street.close()
})

test('a user of one process registers with the identity service of another, and the other way round', async () => {
  for (const [home, service] of [houses, houses.toReversed()] as [House, House][]) {
    const { userId, token } = await register(home.api, 'alice')
    const path = `/user/${encodeURIComponent(userId)}/openid/request_token`
    const openIdToken = await home.api.call('POST', path, { token, body: {} })
    const P2 = '/_matrix/identity/v2'
    const registered = await service.api.call('POST', `${P2}/account/register`, { body: openIdToken })
    const account = await service.api.call('GET', `${P2}/account`, { token: registered.token })
    expect(account).toEqual({ user_id: userId })
    expect(home.front.requests.map(({ url }) => url.split('?')[0])).toContain('/_matrix/federation/v1/openid/userinfo')
  }
})

test('an authority that the operator did not name vouches for nobody', async () => {
  const [home, service] = houses as [House, House]
  const stranger = createAuthority()
  const impostor = await startTlsServer(stranger.issue(['localhost']), json({ sub: `@alice:${home.name}` }))
  const body = {
    access_token: 'x',
    token_type: 'Bearer',
    expires_in: 3600,
    matrix_server_name: `localhost:${impostor.port}`,
  }
  const answer = await service.api.request('POST', '/_matrix/identity/v2/account/register', { body })
  expect(answer).toMatchObject({ status: 502, body: { errcode: 'M_UNKNOWN' } })
  expect(impostor.requests).toEqual([])
  await impostor.close()
  stranger.remove()
})

const enc = encodeURIComponent

async function joinThrough(via: string, { api }: Pick<House, 'api'>, { token }: Account, room: string): Promise<void> {
  await api.call('POST', `/join/${enc(room)}?server_name=${enc(via)}`, { token, body: {} })
}

/** Repeats a request until the server is there to answer it. */
const insist = <T>(what: string, ask: () => Promise<T>): Promise<T> =>
  waitUntil(what, () => ask().catch(() => undefined), { timeoutMs: 60_000 })

async function kill({ child }: House): Promise<void> {
  await child.kill('SIGKILL')
  await child.start()
}

/** The ids of the messages of a room by their texts, all that its timeline has. */
async function messagesAt({ api }: House, { token }: Account, room: string): Promise<[text: string, id: string][]> {
  const found: [string, string][] = []
  for (let from = ''; ; ) {
    const page = await api.call('GET', `/rooms/${enc(room)}/messages?dir=b&limit=100${from}`, { token })
    for (const { type, content, event_id } of page.chunk)
      if (type === 'm.room.message') found.push([content.body, event_id])
    if (page.end === undefined || page.chunk.length === 0) return found.sort()
    from = `&from=${enc(page.end)}`
  }
}

test(
  `${MESSAGES} messages between two processes, each killed in the middle: both have all, once`,
  async () => {
    const [alpha, beta] = houses as [House, House]
    const alice = await register(alpha.api, 'alice-talks')
    const bob = await register(beta.api, 'bob-talks')
    const room = await createRoom(alpha.api, alice.token, { preset: 'public_chat' })
    await joinThrough(alpha.name, beta, bob, room)
    const half = MESSAGES / 2
    const dice = new Dice(SEED)
    const part = Math.floor(MESSAGES / (KILLS + 1))
    const moments = Array.from({ length: KILLS }, (_, n) => (n + 1) * part + dice.below(part))
    let sent = 0
    let killing = Promise.resolve()
    const talk = async (house: House, who: Account, name: string) => {
      for (let n = 0; n < half; n++) {
        const text = `${name} ${n}`
        await insist(text, () => sendText(house.api, who.token, room, text, text))
        sent++
        // Each both sends and receives just then.
        const victim = moments.indexOf(sent)
        if (victim >= 0) killing = killing.then(() => kill(houses[victim % 2]!))
      }
    }
    await Promise.all([talk(alpha, alice, 'alice'), talk(beta, bob, 'bob')])
    await killing
    const texts = ['alice', 'bob'].flatMap((name) => Array.from({ length: half }, (_, n) => `${name} ${n}`)).sort()
    for (const [house, who] of [
      [alpha, alice],
      [beta, bob],
    ] as const) {
      await waitUntil(
        `all messages at ${who.userId}`,
        async () => (await messagesAt(house, who, room)).length >= MESSAGES,
        { timeoutMs: 60_000, everyMs: 100 },
      )
    }
    const [here, there] = [await messagesAt(alpha, alice, room), await messagesAt(beta, bob, room)]
    expect(here.map(([text]) => text)).toEqual(texts)
    expect(there).toEqual(here)

    // A transaction that comes again, as it was, gets the answer that it got, and does nothing.
    const again = alpha.front.requests.findLast(({ url, body }) => url.includes('/send/') && body.includes('bob'))!
    const { method, url, body, headers } = again
    const repeat = async () => {
      const { authorization = '', 'content-type': type = '' } = headers
      const answer = await fetch(alpha.child.baseUrl + url, {
        method,
        body,
        headers: { authorization, 'content-type': type },
      })
      return { status: answer.status, text: await answer.text() }
    }
    const before = await repeat()
    expect(before.status).toBe(200)
    expect(Object.keys(JSON.parse(before.text).pdus)).not.toEqual([])
    await kill(alpha)
    expect(await repeat()).toEqual(before)
    expect(await messagesAt(alpha, alice, room)).toEqual(here)
  },
  60_000 + MESSAGES * 100,
)

test('a join that one server took by a handshake reaches the third, though it was killed at once', async () => {
  const [alpha, beta] = houses as [House, House]
  const gamma = await street.open()
  const alice = await register(alpha.api, 'alice-hosts')
  const bob = await register(beta.api, 'bob-comes')
  const carol = await gamma.person('carol')
  const room = await createRoom(alpha.api, alice.token, { preset: 'public_chat' })
  await joinThrough(alpha.name, gamma, carol, room)
  const { handler } = gamma.front
  gamma.front.handler = json({}, 502)
  await joinThrough(alpha.name, beta, bob, room)
  await kill(alpha)
  gamma.front.handler = handler
  const where = `/rooms/${enc(room)}/state/m.room.member/${enc(bob.userId)}`
  const { membership } = await insist('the join', () => gamma.api.call('GET', where, { token: carol.token }))
  expect(membership).toBe('join')
})
