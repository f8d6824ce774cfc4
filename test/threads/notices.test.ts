import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

/** What following a thread does to notices of it (MSC4306). */

let house: House
let alice: Person
let bob: Person
let room: string
let followed: string
let other: string
let sent = 0

const RULES = '/pushrules/global/postcontent'
const [UNFOLLOWED, FOLLOWED] = ['unsubscribed', 'subscribed'].map((name) => `.io.element.msc4306.rule.${name}_thread`)
const subscription = (rootId: string) =>
  `/_matrix/client/unstable/io.element.msc4306${inRoom(room, `/thread/${encodeURIComponent(rootId)}/subscription`)}`

const reply = async (rootId: string, more: object = {}): Promise<string> => {
  const content = {
    msgtype: 'm.text',
    body: 'reply',
    'm.relates_to': { rel_type: 'm.thread', event_id: rootId },
    ...more,
  }
  return (await bob.call('PUT', inRoom(room, `/send/m.room.message/notice-${++sent}`), content)).event_id
}

const mention = () => ({ 'm.mentions': { user_ids: [alice.userId] } })
const counts = (notification_count: number, highlight_count = 0) => ({ notification_count, highlight_count })

async function unread(): Promise<{ main: Json; threads: Json }> {
  const filter = { room: { rooms: [room], timeline: { limit: 1, unread_thread_notifications: true } } }
  const { rooms } = await alice.call('GET', `/sync?timeout=0&filter=${encodeURIComponent(JSON.stringify(filter))}`)
  const { unread_notifications: main, unread_thread_notifications: threads = {} } = rooms.join[room]
  return { main, threads }
}

const readAll = async () => {
  const last = await bob.say(room, 'read up to here')
  await alice.call('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(last)}`), {})
}

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  const carol = await house.person('carol')
  room = await alice.createRoom({ preset: 'public_chat' })
  for (const person of [bob, carol]) await person.join(room)
  followed = await bob.say(room, 'one')
  other = await bob.say(room, 'two')
})
afterAll(() => house.close())

describe('threads', () => {
  it('notify everybody who follows none', async () => {
    await readAll()
    await reply(followed)
    await reply(other)
    expect(await unread()).toEqual({ main: counts(0), threads: { [followed]: counts(1), [other]: counts(1) } })
    const { postcontent } = await alice.call('GET', '/pushrules/global/')
    const conditions = (subscribed: boolean) => [{ kind: 'io.element.msc4306.thread_subscription', subscribed }]
    expect(postcontent).toEqual([
      { rule_id: UNFOLLOWED, default: true, enabled: false, conditions: conditions(false), actions: [] },
      {
        ...{ rule_id: FOLLOWED, default: true, enabled: false, conditions: conditions(true) },
        actions: ['notify', { set_tweak: 'sound', value: 'default' }],
      },
    ])
  })

  it('notify whoever follows a thread only of that one, and of mentions in all', async () => {
    const { next_batch: since } = await alice.call('GET', '/sync?timeout=0')
    await alice.call('PUT', subscription(followed), {})
    const { account_data } = await alice.call('GET', `/sync?timeout=0&since=${since}`)
    expect(account_data.events).toMatchObject([{ type: 'm.push_rules' }])
    for (const rule of [UNFOLLOWED, FOLLOWED]) {
      expect(await alice.call('GET', `${RULES}/${rule}/enabled`)).toEqual({ enabled: true })
    }
    await readAll()
    await reply(followed)
    await reply(other)
    expect(await unread()).toEqual({ main: counts(0), threads: { [followed]: counts(1) } })
    const named = await reply(other, mention())
    await bob.say(room, 'in the room')
    expect(await unread()).toEqual({
      main: counts(1),
      threads: { [followed]: counts(1), [other]: counts(1, 1) },
    })
    const { notifications } = await alice.call('GET', '/notifications?limit=3')
    expect(notifications.map(({ event, actions }: Json) => [event.content.body, actions.length])).toEqual([
      ['in the room', 1],
      ['reply', 3],
      ['reply', 2],
    ])
    expect(notifications[1].event.event_id).toBe(named)
  })

  it('are heard of in a room where only mentions notify', async () => {
    await alice.call('PUT', `/pushrules/global/room/${encodeURIComponent(room)}`, { actions: [] })
    await readAll()
    await reply(followed)
    await reply(other)
    expect(await unread()).toEqual({ main: counts(0), threads: { [followed]: counts(1) } })
    await alice.call('DELETE', `/pushrules/global/room/${encodeURIComponent(room)}`)
  })

  it('are silent for whoever follows them no more', async () => {
    await alice.call('DELETE', subscription(followed))
    await readAll()
    await reply(followed)
    expect(await unread()).toEqual({ main: counts(0), threads: {} })
    await alice.call('PUT', subscription(followed), {})
    await reply(followed)
    expect(await unread()).toEqual({ main: counts(0), threads: { [followed]: counts(1) } })
  })

  it('notify as before once the user says so, whatever the user follows later', async () => {
    for (const rule of [UNFOLLOWED, FOLLOWED]) await alice.call('PUT', `${RULES}/${rule}/enabled`, { enabled: false })
    await alice.call('PUT', subscription(other), {})
    await readAll()
    await reply(followed)
    await reply(other)
    expect(await unread()).toEqual({ main: counts(0), threads: { [followed]: counts(1), [other]: counts(1) } })
  })

  it('push to whoever follows them', async () => {
    const dave = await house.person('dave')
    await dave.join(room)
    await dave.call('PUT', subscription(followed), {})
    const [heard, unheard] = [await reply(followed), await reply(other)]
    const { notifications } = await waitUntil('the notices', async () => {
      const list = await dave.call('GET', '/notifications?limit=9')
      return list.notifications.length > 0 && list
    })
    const ids = notifications.map(({ event }: Json) => event.event_id)
    expect([ids.includes(heard), ids.includes(unheard)]).toEqual([true, false])
  })

  it('have rules that nobody can add to', async () => {
    expect(await alice.ask('PUT', `${RULES}/mine`, { actions: [], conditions: [] })).toMatchObject({
      status: 400,
      body: { errcode: 'M_INVALID_PARAM' },
    })
    expect(await alice.ask('DELETE', `${RULES}/${FOLLOWED}`)).toMatchObject({ status: 400 })
  })
})
