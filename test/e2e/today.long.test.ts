import './promise-with-resolvers.ts'
import {
  createClient,
  EventType,
  type MatrixClient,
  type MatrixEvent,
  MemoryStore,
  MsgType,
  NotificationCountType,
  Preset,
  PushRuleActionName,
  PushRuleKind,
  ReceiptType,
  RelationType,
  type Room,
  Visibility,
} from 'matrix-js-sdk'
import { logger } from 'matrix-js-sdk/lib/logger.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openApi, PASSWORD, register } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { newName, openTarget } from './target.ts'

/** What people of today do with an unmodified client, thread support on. No request may end where a server has nothing to say. */

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {}, getChild: () => silent }
Object.assign(logger, silent)

let target: Awaited<ReturnType<typeof openTarget>>
let alice: MatrixClient
let bob: MatrixClient
let carol: MatrixClient
let roomId: string
const clients: MatrixClient[] = []
/** Answers that make a client show an error box: unknown paths and methods, and failures of the server. */
const unanswered: string[] = []

const watched: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init)
  const isUnknown = answer.status === 404 && (await answer.clone().text()).includes('M_UNRECOGNIZED')
  if (isUnknown || answer.status === 405 || answer.status >= 500) {
    unanswered.push(`${init?.method ?? 'GET'} ${new URL(String(input)).pathname}: ${answer.status}`)
  }
  return answer
}

async function enter(stem: string): Promise<MatrixClient> {
  const baseUrl = target.baseUrl
  const api = openApi(baseUrl)
  const name = newName(stem)
  await register(api, name)
  await api.close()
  const identifier = { type: 'm.id.user', user: name }
  const entrance = createClient({ baseUrl, fetchFn: watched, logger: silent })
  const session = await entrance.loginRequest({ type: 'm.login.password', identifier, password: PASSWORD })
  const { access_token: accessToken, user_id: userId, device_id: deviceId } = session
  const options = { baseUrl, fetchFn: watched, logger: silent, accessToken, userId, deviceId }
  const client = createClient({ ...options, store: new MemoryStore() })
  await client.startClient({ initialSyncLimit: 20, threadSupport: true, lazyLoadMembers: true, pollTimeout: 5_000 })
  await waitUntil(`${userId}'s first sync`, () => client.isInitialSyncComplete())
  clients.push(client)
  return client
}

beforeAll(async () => {
  target = await openTarget()
  alice = await enter('alice')
  bob = await enter('bob')
  carol = await enter('carol')
})
afterAll(async () => {
  for (const client of clients) client.stopClient()
  await target.close()
})

const roomOf = (client: MatrixClient, id = roomId): Room => client.getRoom(id)!
const eventAt = (client: MatrixClient, eventId: string) =>
  waitUntil(`${eventId} at ${client.getSafeUserId()}`, () => client.getRoom(roomId)?.findEventById(eventId))
const say = async (client: MatrixClient, body: string, id = roomId): Promise<string> =>
  (await client.sendTextMessage(id, body)).event_id
const relate = async (client: MatrixClient, type: string, relation: object, content: object = {}): Promise<string> => {
  const whole = { ...content, 'm.relates_to': relation }
  return (await client.sendEvent(roomId, type as EventType.RoomMessage, whole as never)).event_id
}
const bodies = (events: readonly MatrixEvent[]) => events.map((event) => event.getContent().body)

describe('rooms', () => {
  it('are made, invited to and joined', async () => {
    const made = await alice.createRoom({ name: 'Today', topic: 'All of it', preset: Preset.PrivateChat })
    roomId = made.room_id
    for (const guest of [bob, carol]) {
      await alice.invite(roomId, guest.getSafeUserId())
      await waitUntil('the invitation', () => guest.getRoom(roomId)?.getMyMembership() === 'invite')
      await guest.joinRoom(roomId)
    }
    await waitUntil('three members', () => roomOf(alice).getJoinedMemberCount() === 3)
    expect(roomOf(bob).name).toBe('Today')
  })

  it('are marked as favourites, and not any more', async () => {
    await alice.setRoomTag(roomId, 'm.favourite', { order: 0.5 })
    await waitUntil('the tag', () => roomOf(alice).tags['m.favourite']?.order === 0.5)
    expect((await alice.getRoomTags(roomId)).tags['m.favourite']).toEqual({ order: 0.5 })
    await alice.deleteRoomTag(roomId, 'm.favourite')
    await waitUntil('no tag', () => roomOf(alice).tags['m.favourite'] === undefined)
  })

  it('are shown before they are joined', async () => {
    const { room_id: open } = await alice.createRoom({
      ...{ name: 'Open', visibility: Visibility.Public, preset: Preset.PublicChat },
      initial_state: [
        { type: 'm.room.history_visibility', state_key: '', content: { history_visibility: 'world_readable' } },
      ],
    })
    await say(alice, 'for all to read', open)
    const summary = await bob.getRoomSummary(open)
    expect([summary.name, summary.num_joined_members]).toEqual(['Open', 1])
    const peeked = await bob.peekInRoom(open)
    expect(bodies(peeked.timeline)).toContain('for all to read')
    await say(alice, 'while you look', open)
    await waitUntil('what is said meanwhile', () => bodies(peeked.timeline).includes('while you look'))
    bob.stopPeeking()
    const { chunk } = await bob.publicRooms({ filter: { generic_search_term: 'Open' } })
    expect(chunk.map(({ room_id }) => room_id)).toContain(open)
  })
})

describe('messages', () => {
  it('are edited', async () => {
    const message = await say(alice, 'frist')
    await relate(
      alice,
      EventType.RoomMessage,
      { rel_type: RelationType.Replace, event_id: message },
      {
        ...{ msgtype: MsgType.Text, body: '* first' },
        'm.new_content': { msgtype: MsgType.Text, body: 'first' },
      },
    )
    const seen = await eventAt(bob, message)
    await waitUntil('the edit', () => seen.getContent().body === 'first')
    const { originalEvent, events } = await bob.relations(roomId, message, RelationType.Replace, EventType.RoomMessage)
    expect([originalEvent?.getId(), events.length]).toEqual([message, 1])
  })

  it('get reactions, each of them once', async () => {
    const message = await say(alice, 'do you like it?')
    const relation = { rel_type: RelationType.Annotation, event_id: message, key: '👍' }
    await relate(bob, EventType.Reaction, relation)
    await relate(carol, EventType.Reaction, relation)
    await eventAt(alice, message)
    const counted = () =>
      roomOf(alice)
        .relations.getChildEventsForEvent(message, RelationType.Annotation, EventType.Reaction)
        ?.getSortedAnnotationsByKey()
    await waitUntil('two thumbs', () => counted()?.[0]?.[1].size === 2)
    await expect(relate(bob, EventType.Reaction, relation)).rejects.toMatchObject({ errcode: 'M_DUPLICATE_ANNOTATION' })
  })

  it('are removed', async () => {
    const message = await say(bob, 'a slip')
    const seen = await eventAt(alice, message)
    await bob.redactEvent(roomId, message)
    await waitUntil('the redaction', () => seen.isRedacted())
  })

  it('are found by their words', async () => {
    await say(carol, 'the hedgehog crossed the road')
    const found = async () => (await alice.searchRoomEvents({ term: 'hedgehog' })).results
    const [result] = await waitUntil('the message to be found', async () => {
      const results = await found()
      return results.length > 0 && results
    })
    expect(result!.context.getEvent().getContent().body).toBe('the hedgehog crossed the road')
    const inRoom = await alice.searchRoomEvents({ term: 'hedgehog road', filter: { rooms: [roomId] } })
    expect(inRoom.count).toBe(1)
  })
})

describe('threads', () => {
  let root: string
  let reply: string

  it('begin at a message, and are known to everybody', async () => {
    root = await say(alice, 'let us discuss')
    await eventAt(bob, root)
    const content = { msgtype: MsgType.Text, body: 'in a thread' }
    reply = await relate(bob, EventType.RoomMessage, { rel_type: 'm.thread', event_id: root }, content)
    const thread = await waitUntil('the thread', () => roomOf(alice).getThread(root) ?? undefined)
    await waitUntil('its reply', () => thread.replyToEvent?.getId() === reply)
    expect(thread.length).toBe(1)
  })

  it('count unread apart from the room, until they are read', async () => {
    const more = { msgtype: MsgType.Text, body: 'and another' }
    const last = await relate(bob, EventType.RoomMessage, { rel_type: 'm.thread', event_id: root }, more)
    const unread = () => roomOf(alice).getThreadUnreadNotificationCount(root, NotificationCountType.Total)
    await waitUntil('an unread reply', () => unread() > 0)
    const event = await waitUntil('the reply', () => roomOf(alice).getThread(root)?.findEventById(last))
    await alice.sendReadReceipt(event, ReceiptType.Read)
    await waitUntil('nothing unread in the thread', () => unread() === 0)
  })

  it('are listed', async () => {
    const { chunk } = await alice.createThreadListMessagesRequest(roomId, null, 10)
    expect(chunk.map(({ event_id }) => event_id)).toContain(root)
    await roomOf(alice).createThreadsTimelineSets()
    await roomOf(alice).fetchRoomThreads()
    expect(
      roomOf(alice)
        .getThreads()
        .map(({ id }) => id),
    ).toContain(root)
  })
})

describe('notices', () => {
  it('are counted, and mentions stand out', async () => {
    const latest = await say(alice, 'read up to here')
    await alice.sendReadReceipt(await eventAt(alice, latest), ReceiptType.ReadPrivate)
    const content = { msgtype: MsgType.Text, body: 'you there', 'm.mentions': { user_ids: [alice.getSafeUserId()] } }
    await bob.sendEvent(roomId, EventType.RoomMessage, content as never)
    await waitUntil(
      'a highlight',
      () => roomOf(alice).getUnreadNotificationCount(NotificationCountType.Highlight) === 1,
    )
    const { notifications } = await notificationsOf(alice)
    expect(notifications[0]!.event.content.body).toBe('you there')
    await alice.setRoomReadMarkers(
      roomId,
      notifications[0]!.event.event_id,
      await eventAt(alice, notifications[0]!.event.event_id),
    )
    await waitUntil('none', () => roomOf(alice).getUnreadNotificationCount(NotificationCountType.Highlight) === 0)
  })

  it('are wanted for a word, and not from a muted room', async () => {
    const rule = { actions: [PushRuleActionName.Notify, { set_tweak: 'highlight' }], pattern: 'cake' }
    await carol.addPushRule('global', PushRuleKind.ContentSpecific, 'cake', rule as never)
    await waitUntil('the rule', () => carol.pushRules?.global.content?.some(({ rule_id }) => rule_id === 'cake'))
    await say(bob, 'there is cake')
    await waitUntil('the word', () => roomOf(carol).getUnreadNotificationCount(NotificationCountType.Highlight) === 1)
    await carol.deletePushRule('global', PushRuleKind.ContentSpecific, 'cake')
    await carol.setRoomMutePushRule('global', roomId, true)
    const seen = await say(bob, 'nobody hears this')
    await eventAt(carol, seen)
    await carol.sendReadReceipt(await eventAt(carol, seen))
    await waitUntil('nothing unread', () => roomOf(carol).getUnreadNotificationCount() === 0)
    await eventAt(carol, await say(bob, 'nor this'))
    expect(roomOf(carol).getUnreadNotificationCount()).toBe(0)
  })

  it('go to a phone', async () => {
    const pusher = {
      ...{ app_id: 'org.example.app', pushkey: 'key', kind: 'http', lang: 'en', append: false },
      ...{
        app_display_name: 'App',
        device_display_name: 'Phone',
        data: { url: 'https://push.invalid/_matrix/push/v1/notify' },
      },
    }
    await alice.setPusher(pusher as never)
    expect((await alice.getPushers()).pushers).toMatchObject([{ pushkey: 'key' }])
    await alice.removePusher('key', 'org.example.app')
    expect((await alice.getPushers()).pushers).toEqual([])
  })
})

describe('people', () => {
  it('are found by name, and say who they are', async () => {
    await bob.setDisplayName('Robert the Bruce')
    await bob.setExtendedProfileProperty('org.example.pronouns', 'he')
    expect(await alice.getExtendedProfile(bob.getSafeUserId())).toMatchObject({ 'org.example.pronouns': 'he' })
    const found = await waitUntil('Robert', async () => {
      const { results } = await alice.searchUserDirectory({ term: 'robe' })
      return results.find(({ user_id }) => user_id === bob.getSafeUserId())
    })
    expect(found.display_name).toBe('Robert the Bruce')
    expect(await alice._unstable_getSharedRooms(bob.getSafeUserId())).toContain(roomId)
  })

  it('are ignored', async () => {
    await alice.setIgnoredUsers([carol.getSafeUserId()])
    await waitUntil('the list', () => alice.isUserIgnored(carol.getSafeUserId()))
    const unheard = await say(carol, 'listen!')
    await eventAt(alice, await say(bob, 'after that'))
    expect(roomOf(alice).findEventById(unheard)).toBeUndefined()
    await alice.setIgnoredUsers([])
  })

  it('are reported, and so are messages and rooms', async () => {
    const rude = await say(carol, 'rude')
    await eventAt(alice, rude)
    await alice.reportEvent(roomId, rude, -100, 'rude')
    await alice.reportRoom(roomId, 'a bad room')
  })

  it('refuse invitations', async () => {
    await carol.setAccountData('m.invite_permission_config' as never, { default_action: 'block' } as never)
    const refused = bob.createRoom({ invite: [carol.getSafeUserId()] })
    await expect(refused).rejects.toMatchObject({ errcode: 'M_INVITE_BLOCKED' })
    await carol.setAccountData('m.invite_permission_config' as never, {} as never)
  })
})

describe('a room that is upgraded', () => {
  it('leads to its successor, which has what the old one had', async () => {
    const { replacement_room: next } = await alice.upgradeRoom(roomId, '12')
    await waitUntil('the tombstone', () => roomOf(bob).currentState.getStateEvents('m.room.tombstone', '') !== null)
    await bob.joinRoom(next).catch(async () => {
      await alice.invite(next, bob.getSafeUserId())
      await bob.joinRoom(next)
    })
    const room = await waitUntil('the new room', () => bob.getRoom(next) ?? undefined)
    await waitUntil('its name', () => room.name === 'Today')
    expect(room.findPredecessor()?.roomId).toBe(roomId)
  })
})

it('no request was left without an answer', () => {
  // Without OAuth, and without TURN, a client is told so.
  const expected = /auth_metadata|rtc\/transports|dehydrated_device/
  expect(unanswered.filter((line) => !expected.test(line))).toEqual([])
})

interface Listed {
  readonly notifications: {
    readonly event: { readonly event_id: string; readonly content: { readonly body?: string } }
  }[]
}

async function notificationsOf(client: MatrixClient): Promise<Listed> {
  const answer = await watched(`${target.baseUrl}/_matrix/client/v3/notifications?limit=5&only=highlight`, {
    headers: { authorization: `Bearer ${client.getAccessToken()}` },
  })
  return (await answer.json()) as Listed
}
