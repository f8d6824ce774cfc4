import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MAX_EVENTS_EVALUATED_FOR_NOTIFICATIONS, MAX_NOTIFICATIONS } from '../../src/domain/limits/notifications.ts'
import {
  type Account,
  type Api,
  createRoom,
  type Json,
  join,
  mapConcurrently,
  openApi,
  register,
  sendText,
} from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
let api: Api
let alice: Account
let bob: Account
let room: string
let serial = 0

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
})

afterAll(async () => {
  await api?.close()
  await server?.close()
})

beforeEach(async () => {
  serial += 1
  bob = await register(api, `bob${serial}`)
  room = await createRoom(api, alice.token, { preset: 'public_chat' })
  await join(api, bob.token, room)
})

const say = (text: string, by = alice, where = room) => sendText(api, by.token, where, `${text} ${serial}`, text)
const path = (rest: string) => `/rooms/${encodeURIComponent(room)}${rest}`
const mention = async (): Promise<string> => {
  const body = { msgtype: 'm.text', body: 'you', 'm.mentions': { user_ids: [bob.userId] } }
  return (await api.call('PUT', path(`/send/m.room.message/m${serial}`), { token: alice.token, body })).event_id
}
const ask = (query = '') => api.request('GET', `/notifications${query}`, { token: bob.token })
const list = async (query = ''): Promise<Json> => (await ask(query)).body
const texts = ({ notifications }: Json) => notifications.map(({ event }: Json) => event.content.body)

describe('the list of notifications', () => {
  it('has events that the rules notify of, the newest first, with what the rules want and whether they were read', async () => {
    const first = await say('one')
    await api.call('POST', path(`/receipt/m.read/${encodeURIComponent(first)}`), { token: bob.token, body: {} })
    await say('own', bob)
    const notice = { msgtype: 'm.notice', body: 'notice' }
    await api.call('PUT', path('/send/m.room.message/notice'), { token: alice.token, body: notice })
    const last = await mention()
    const { notifications, ...rest } = await list()
    expect(rest).toEqual({})
    expect(notifications).toEqual([
      {
        actions: ['notify', { set_tweak: 'sound', value: 'default' }, { set_tweak: 'highlight' }],
        ...{ profile_tag: null, read: false, room_id: room, ts: expect.any(Number) },
        event: expect.objectContaining({ event_id: last, sender: alice.userId, type: 'm.room.message' }),
      },
      {
        actions: ['notify', { set_tweak: 'sound', value: 'default' }],
        ...{ profile_tag: null, read: true, room_id: room, ts: expect.any(Number) },
        event: expect.objectContaining({ event_id: first, content: { msgtype: 'm.text', body: 'one' } }),
      },
    ])
    expect(notifications[0].event).not.toHaveProperty('room_id')
  })

  it('has highlights alone where they are wanted', async () => {
    await say('one')
    await mention()
    expect(texts(await list('?only=highlight'))).toEqual(['you'])
    expect(texts(await list('?only=everything'))).toEqual(['you', 'one'])
  })

  it('has invitations, nothing redacted, and nothing of muted rooms', async () => {
    const gone = await say('gone')
    await api.call('PUT', path(`/redact/${encodeURIComponent(gone)}/r`), { token: alice.token, body: {} })
    await createRoom(api, alice.token, { invite: [bob.userId] })
    const { notifications } = await list()
    expect(notifications).toMatchObject([{ event: { type: 'm.room.member', state_key: bob.userId }, read: false }])
    await say('muted')
    const conditions = [{ kind: 'event_match', key: 'room_id', pattern: room }]
    await api.call('PUT', '/pushrules/global/override/mute', { token: bob.token, body: { conditions, actions: [] } })
    expect((await list()).notifications).toHaveLength(1)
  })

  it('goes on where the last answer ended, over several rooms, without a gap or a repetition', async () => {
    const other = await createRoom(api, alice.token, { preset: 'public_chat' })
    await join(api, bob.token, other)
    const wanted: string[] = []
    for (let index = 0; index < 11; index++) {
      await say(`text ${index}`, alice, index % 2 ? room : other)
      wanted.unshift(`text ${index}`)
    }
    const found: string[] = []
    let next = ''
    do {
      const page = await list(`?limit=4${next}`)
      expect(page.notifications.length).toBeLessThanOrEqual(4)
      found.push(...texts(page))
      next = page.next_token && `&from=${page.next_token}`
    } while (next)
    expect(found).toEqual(wanted)
  })

  it('has 50 by default, and as many as the most that one answer may have', async () => {
    await mapConcurrently(Array.from({ length: MAX_NOTIFICATIONS + 10 }), 16, (_, index) => say(`n ${index}`))
    expect((await list()).notifications).toHaveLength(50)
    expect((await list('?limit=100000')).notifications).toHaveLength(MAX_NOTIFICATIONS)
  })

  it('looks at a limited number of events for one answer, and says that there is more', async () => {
    await say('old')
    const body = { msgtype: 'm.notice', body: 'x' }
    await mapConcurrently(Array.from({ length: MAX_EVENTS_EVALUATED_FOR_NOTIFICATIONS }), 32, (_, index) =>
      api.call('PUT', path(`/send/m.room.message/x${serial}_${index}`), { token: alice.token, body }),
    )
    // The room's newest events are looked at, and the old one is not among them any more.
    const page = await list()
    expect(page).toEqual({ notifications: [], next_token: expect.any(String) })
    expect(await list(`?from=${page.next_token}`)).toEqual({ notifications: [] })
  })

  it.each(['?from=x', '?limit=0', '?limit=-1', '?limit=x', '?from=p99999999999999999999'])(
    'refuses %s',
    async (query) => {
      const { status, body } = await ask(query)
      expect([status, body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
    },
  )
})
