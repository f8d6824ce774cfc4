import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN, type Office, openOffice, registerBySecret, SECRET } from '../admin/office.ts'
import { type Account, createRoom, type Json, join, sendText, syncPath } from '../support/api.ts'
import { openNeighbourhood } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

let office: Office
let alice: Account
let troll: Account
let room: string
let sent = 0

const enc = encodeURIComponent
const inRoom = (rest: string, of = room) => `/rooms/${enc(of)}${rest}`
const as = (who: Account, method: string, path: string, body?: unknown) =>
  office.api.request(method, path, { token: who.token, body })
const sync = (who: Account, since?: string) =>
  office.api.call('GET', syncPath({ ...(since === undefined ? {} : { since }) }), { token: who.token })
const timelineOf = (body: Json, of = room) => (body.rooms?.join?.[of]?.timeline.events ?? []) as Json[]
const textsIn = (events: readonly Json[]) => events.flatMap(({ content }) => content.body ?? [])
const say = (who: Account, text: string) => sendText(office.api, who.token, room, `t${sent++}`, text)
const ban = (who: Account, method = 'POST') =>
  office.ask(method, `/v1/users/${enc(who.userId)}/shadow_ban`, method === 'POST' ? {} : undefined)

beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
  troll = await office.person('troll')
  room = await createRoom(office.api, alice.token, { preset: 'public_chat', invite: [] })
  await join(office.api, troll.token, room)
})

afterAll(() => office.close())

describe('a shadow ban', () => {
  test('is for operators, and not for administrators', async () => {
    expect((await office.ask('POST', `/v1/users/${enc(alice.userId)}/shadow_ban`, {}, troll.token)).status).toBe(403)
    expect((await ban(office.boss)).body.errcode).toBe('M_FORBIDDEN')
    const nobody = await office.ask('POST', '/v1/users/@none:localhost/shadow_ban', {})
    expect([nobody.status, nobody.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
    expect(await ban(troll)).toEqual({ status: 200, body: {} })
    expect((await office.call('GET', `/v2/users/${enc(troll.userId)}`)).shadow_banned).toBe(true)
    expect((await office.call('GET', '/v3/users?shadow_banned=true')).total).toBe(1)
  })

  test('shows what they send to themselves, and to nobody else', async () => {
    const [before, hers] = [await sync(troll), await sync(alice)]
    let since = before.next_batch
    // Other news may come first, such as the troll's own presence.
    const held = waitUntil('the event', async () => {
      const news = await office.api.call('GET', syncPath({ since, timeout: 10_000 }), { token: troll.token })
      since = news.next_batch
      return timelineOf(news).length > 0 && news
    })
    const eventId = await say(troll, 'buy my coins')
    const shown = await held
    expect(timelineOf(shown).map(({ event_id }) => event_id)).toEqual([eventId])
    expect(timelineOf(shown)[0]).toMatchObject({ sender: troll.userId, content: { body: 'buy my coins' } })
    expect(textsIn(timelineOf(await sync(troll)))).toContain('buy my coins')
    expect(timelineOf(await sync(troll, shown.next_batch))).toEqual([])
    expect(textsIn(timelineOf(await sync(alice, hers.next_batch)))).toEqual([])
    expect(textsIn(timelineOf(await sync(alice)))).not.toContain('buy my coins')
    const { chunk } = await office.api.call('GET', inRoom('/messages?dir=b&limit=50'), { token: alice.token })
    expect(textsIn(chunk)).not.toContain('buy my coins')
    expect((await as(alice, 'GET', inRoom(`/event/${enc(eventId)}`))).status).toBe(404)
    const rows = await office.server.database.db.query("SELECT 1 FROM event WHERE json LIKE '%buy my coins%'")
    expect(rows).toEqual([])
    // What others say meanwhile comes with it, in order.
    await say(alice, 'hello')
    await say(troll, 'and my tokens')
    expect(textsIn(timelineOf(await sync(troll, shown.next_batch)))).toEqual(['hello', 'and my tokens'])
  })

  test('answers a repeated transaction with the same event', async () => {
    const path = inRoom('/send/m.room.message/again')
    const body = { msgtype: 'm.text', body: 'once' }
    const first = await as(troll, 'PUT', path, body)
    expect((await as(troll, 'PUT', path, body)).body).toEqual(first.body)
    const shown = timelineOf(await sync(troll)).filter(({ content }) => content.body === 'once')
    expect(shown).toHaveLength(1)
    expect(shown[0].unsigned).toEqual({ transaction_id: 'again' })
  })

  test('leaves invitations, names, receipts, typing and messages without effect, and says nothing of it', async () => {
    const hers = await sync(alice)
    const own = await createRoom(office.api, troll.token, { invite: [alice.userId], name: 'Coins' })
    const said = await say(alice, 'read me')
    const answers = [
      await as(troll, 'POST', inRoom('/invite', own), { user_id: alice.userId }),
      await as(troll, 'PUT', `/profile/${enc(troll.userId)}/displayname`, { displayname: 'COINS' }),
      await as(troll, 'POST', inRoom(`/receipt/m.read/${enc(said)}`), {}),
      await as(troll, 'PUT', inRoom(`/typing/${enc(troll.userId)}`), { typing: true, timeout: 10_000 }),
      await as(troll, 'PUT', '/sendToDevice/m.test/1', { messages: { [alice.userId]: { '*': { a: 1 } } } }),
      await as(troll, 'PUT', inRoom('/state/m.room.name'), { name: 'COINS' }),
      await as(troll, 'PUT', inRoom(`/redact/${enc(said)}/r`), {}),
      await as(troll, 'POST', inRoom('/kick'), { user_id: alice.userId }),
    ]
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    const news = await sync(alice, hers.next_batch)
    expect(news.rooms?.invite ?? {}).toEqual({})
    expect(timelineOf(news).map(({ content }) => content.body)).toEqual(['read me'])
    expect(news.rooms.join[room].ephemeral?.events ?? []).toEqual([])
    expect(news.to_device?.events ?? []).toEqual([])
    const { displayname } = await office.api.call('GET', `/profile/${enc(troll.userId)}`, { token: alice.token })
    expect(displayname).not.toBe('COINS')
    // A stranger's room is refused as always.
    const other = await createRoom(office.api, alice.token)
    const body = { msgtype: 'm.text', body: 'x' }
    expect((await as(troll, 'PUT', inRoom('/send/m.room.message/x', other), body)).status).toBe(403)
  })

  test('shows that they come and go, and nothing that they write with it', async () => {
    const hers = await sync(alice)
    const words = { reason: 'COINS', displayname: 'COINS', 'org.example.note': 'COINS' }
    await as(troll, 'POST', inRoom('/leave'), { reason: 'COINS' })
    await as(troll, 'POST', `/join/${enc(room)}`, words)
    await as(troll, 'PUT', inRoom(`/state/m.room.member/${enc(troll.userId)}`), { membership: 'leave', ...words })
    await as(troll, 'POST', inRoom('/join'), words)
    await as(troll, 'PUT', `/presence/${enc(troll.userId)}/status`, { presence: 'online', status_msg: 'COINS' })
    const news = await sync(alice, hers.next_batch)
    expect(timelineOf(news).map(({ content }) => content.membership)).toEqual(['leave', 'join', 'leave', 'join'])
    expect(JSON.stringify(news)).not.toContain('COINS')
    const seen = await office.api.call('GET', `/presence/${enc(troll.userId)}/status`, { token: alice.token })
    expect(seen.status_msg).toBeUndefined()
  })

  test('ends, and survives a restart until then', async () => {
    await office.server.restart()
    await say(troll, 'still hidden')
    expect(textsIn(timelineOf(await sync(alice)))).not.toContain('still hidden')
    await as(troll, 'POST', inRoom('/leave'), {})
    await join(office.api, troll.token, room)
    expect((await ban(troll, 'DELETE')).status).toBe(200)
    await say(troll, 'sorry')
    expect(textsIn(timelineOf(await sync(alice)))).toContain('sorry')
    const { acts } = await office.call('GET', `/_hearth/admin/v1/acts?target=${enc(troll.userId)}`)
    expect(acts.map(({ act }: Json) => act)).toEqual(
      expect.arrayContaining([
        'POST /_synapse/admin/v1/users/{userId}/shadow_ban',
        'DELETE /_synapse/admin/v1/users/{userId}/shadow_ban',
      ]),
    )
  })
})

test('nothing of a shadow-banned user goes to other servers', async () => {
  const street = openNeighbourhood()
  try {
    const [alpha, beta] = await Promise.all([street.open({ registration: { shared_secret: SECRET } }), street.open()])
    const boss = await registerBySecret(alpha.api, 'boss', true)
    const [near, far] = [await alpha.person('near'), await beta.person('far')]
    const shared = await createRoom(alpha.api, near.token, { preset: 'public_chat' })
    const via = `?server_name=${enc(alpha.name)}`
    await beta.api.call('POST', `/join/${enc(shared)}${via}`, { token: far.token, body: {} })
    await alpha.api.call('POST', `${ADMIN}/v1/users/${enc(near.userId)}/shadow_ban`, { token: boss.token })
    await sendText(alpha.api, near.token, shared, 'h', 'hidden')
    const path = inRoom('/invite', shared)
    await alpha.api.call('POST', path, { token: near.token, body: { user_id: `@other:${beta.name}` } })
    await alpha.api.call('DELETE', `${ADMIN}/v1/users/${enc(near.userId)}/shadow_ban`, { token: boss.token })
    await sendText(alpha.api, near.token, shared, 's', 'shown')
    const texts = async () => {
      const { chunk } = await beta.api.call('GET', inRoom('/messages?dir=b', shared), { token: far.token })
      return textsIn(chunk)
    }
    await waitUntil('the next message', async () => (await texts()).includes('shown'))
    expect(await texts()).toEqual(['shown'])
    expect(beta.front.requests.filter(({ url }) => url.includes('/invite/'))).toEqual([])
  } finally {
    await street.close()
  }
})
