import { EventType, KnownMembership, Preset, ReceiptType } from 'matrix-js-sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Api, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import {
  hears,
  LIST,
  openSlidingDevice,
  readIn,
  receivedSince,
  type SlidingDevice,
  textsIn,
  timelineOf,
} from './sliding-device.ts'

/** What people do with a client that reads its rooms by sliding sync: matrix-js-sdk, unmodified. */

const ROOMS = 30
const MESSAGES = 30

let server: TestServer
let api: Api
let alice: SlidingDevice
let bob: SlidingDevice
/** Alice's, the oldest first. */
const rooms: string[] = []

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  const [anna, ben] = [await register(api, 'alice'), await register(api, 'bob')]
  for (let number = 0; number < ROOMS; number++) {
    const body = { name: `Room ${number}`, preset: 'private_chat' }
    rooms.push((await api.call('POST', '/createRoom', { token: anna.token, body })).room_id)
  }
  const path = (number: number) => `/rooms/${encodeURIComponent(rooms[0]!)}/send/m.room.message/old-${number}`
  for (let number = 0; number < MESSAGES; number++) {
    await api.call('PUT', path(number), { token: anna.token, body: { msgtype: 'm.text', body: `old ${number}` } })
  }
  alice = await openSlidingDevice(server.baseUrl, anna, 1)
  // Without a gap where an answer is lost: this client would not fill it by itself.
  bob = await openSlidingDevice(server.baseUrl, ben, 20)
})
afterAll(async () => {
  for (const device of [alice, bob]) device?.client.stopClient()
  await api.close()
  await server.close()
})

const idsOf = (device: SlidingDevice, roomId: string) => timelineOf(device, roomId).map((event) => event.getId())
const membershipOf = ({ client }: SlidingDevice, roomId: string, { userId }: SlidingDevice) =>
  client.getRoom(roomId)?.getMember(userId)?.membership
const namesOf = ({ client }: SlidingDevice) =>
  client
    .getRooms()
    .map(({ name }) => name)
    .toSorted()
const names = (numbers: readonly number[]) => numbers.map((number) => `Room ${number}`).toSorted()
const failures = ({ exchanges }: SlidingDevice) =>
  exchanges.filter(({ status }) => status !== 200).map(({ status, answer }) => `${status} ${answer.errcode}`)

/** A room of both, as both see it. */
async function meet(name: string, isEncrypted = false): Promise<string> {
  const encryption = { type: 'm.room.encryption', state_key: '', content: { algorithm: 'm.megolm.v1.aes-sha2' } }
  const { room_id: roomId } = await alice.client.createRoom({
    ...{ name, preset: Preset.PrivateChat, invite: [bob.userId] },
    ...(isEncrypted && { initial_state: [encryption] }),
  })
  await waitUntil('the invitation', () => bob.client.getRoom(roomId)?.getMyMembership() === KnownMembership.Invite)
  expect(bob.client.getRoom(roomId)?.name).toBe(name)
  await bob.client.joinRoom(roomId)
  for (const device of [alice, bob]) {
    await waitUntil(`the join at ${device.userId}`, () => membershipOf(device, roomId, bob) === KnownMembership.Join)
  }
  return roomId
}

const say = async ({ client }: SlidingDevice, roomId: string, text: string) =>
  (await client.sendTextMessage(roomId, text)).event_id

describe('the list', () => {
  it('has the rooms of its window, which are those with the newest activity', async () => {
    const newest = [0, ...Array.from({ length: 9 }, (_, index) => ROOMS - 1 - index)]
    expect(namesOf(alice)).toEqual(names(newest))
    expect(alice.sliding.getListData(LIST)).toEqual({ joinedCount: ROOMS })
  })

  it('has the others when the window grows, and none of them twice', async () => {
    const since = alice.exchanges.length
    alice.sliding.setListRanges(LIST, [[0, ROOMS + 9]])
    await waitUntil('all rooms', () => alice.client.getRooms().length === ROOMS)
    expect(namesOf(alice)).toEqual(names(rooms.map((_, number) => number)))
    const received = alice.exchanges.slice(since).flatMap(({ answer }) => Object.keys(answer.rooms ?? {}))
    expect(new Set(received).size).toBe(received.length)
    expect(received.length).toBe(ROOMS - 10)
  })

  it('counts the rooms of people who have none', () => {
    expect(bob.sliding.getListData(LIST)).toEqual({ joinedCount: 0 })
  })
})

describe('a room', () => {
  let roomId: string

  it('that is opened has its newest messages, and its history behind them', async () => {
    const [old] = rooms
    alice.sliding.modifyRoomSubscriptions(new Set([old!]))
    await waitUntil('twenty messages', () => timelineOf(alice, old!).length >= 20)
    const all = Array.from({ length: MESSAGES }, (_, number) => `old ${number}`)
    expect(textsIn(alice, old!)).toEqual(all.slice(-20))
    const room = alice.client.getRoom(old!)!
    while (timelineOf(alice, old!)[0]!.getType() !== 'm.room.create') {
      const before = timelineOf(alice, old!).length
      await alice.client.scrollback(room, 10)
      expect(timelineOf(alice, old!).length, 'scrollback must make progress').toBeGreaterThan(before)
    }
    expect(textsIn(alice, old!)).toEqual(all)
    const ids = idsOf(alice, old!)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('is invited to and joined', async () => {
    roomId = await meet('Hearthside')
    await waitUntil("Bob's list", () => bob.sliding.getListData(LIST)?.joinedCount === 1)
    expect(alice.sliding.getListData(LIST)).toEqual({ joinedCount: ROOMS + 1 })
  })

  it('carries messages both ways, in order', async () => {
    await say(alice, roomId, 'is the fire lit?')
    await hears(bob, roomId, 'is the fire lit?')
    await say(bob, roomId, 'since noon')
    await hears(alice, roomId, 'since noon')
    for (const device of [alice, bob]) {
      await waitUntil('no echo any more', () => timelineOf(device, roomId).every(({ status }) => status === null))
      expect(textsIn(device, roomId)).toEqual(['is the fire lit?', 'since noon'])
    }
  })

  it('loses what is redacted, and changes its name', async () => {
    const slip = await say(alice, roomId, 'a slip of the tongue')
    await hears(bob, roomId, 'a slip of the tongue')
    await alice.client.redactEvent(roomId, slip)
    await waitUntil('the redaction', () => bob.client.getRoom(roomId)?.findEventById(slip)?.isRedacted())
    await alice.client.setRoomName(roomId, 'At the fire')
    await waitUntil('the new name', () => bob.client.getRoom(roomId)?.name === 'At the fire')
    await alice.client.setRoomTopic(roomId, 'Logs')
    const topic = () => bob.client.getRoom(roomId)?.currentState.getStateEvents('m.room.topic', '')
    await waitUntil('the topic', () => topic()?.getContent().topic === 'Logs')
  })

  it('shows who types, who has read, and what is unread', async () => {
    const isTyping = () => bob.client.getRoom(roomId)?.getMember(alice.userId)?.typing
    await alice.client.sendTyping(roomId, true, 20_000)
    await waitUntil('the typing notice', () => isTyping())
    await alice.client.sendTyping(roomId, false, 0)
    await waitUntil('the end of typing', () => !isTyping())
    const eventId = await say(alice, roomId, 'come and see')
    await hears(bob, roomId, 'come and see')
    const unread = () => bob.client.getRoom(roomId)?.getUnreadNotificationCount()
    await waitUntil('an unread message', () => (unread() ?? 0) > 0)
    await bob.client.sendReadReceipt(bob.client.getRoom(roomId)!.findEventById(eventId)!, ReceiptType.Read)
    const readUpTo = () => alice.client.getRoom(roomId)?.getEventReadUpTo(bob.userId, true)
    await waitUntil('the receipt', () => readUpTo() === eventId)
    await waitUntil('nothing unread', () => unread() === 0)
  })

  it('is tagged, and other account data comes', async () => {
    await alice.client.setRoomTag(roomId, 'm.favourite', { order: 0.5 })
    await waitUntil('the tag', () => alice.client.getRoom(roomId)?.tags['m.favourite']?.order === 0.5)
    await alice.client.setAccountData(EventType.Direct, { [bob.userId]: [roomId] })
    const direct = () => alice.client.getAccountData(EventType.Direct)?.getContent()
    await waitUntil('the direct chats', () => direct()?.[bob.userId]?.[0] === roomId)
    await waitUntil('the news that the room is one', () => receivedSince(alice, 0, roomId).some(({ is_dm }) => is_dm))
  })

  it('is left: the leave comes, and nothing after it', async () => {
    const since = bob.exchanges.length
    await bob.client.leave(roomId)
    for (const device of [alice, bob]) {
      await waitUntil('the leave', () => membershipOf(device, roomId, bob) === KnownMembership.Leave)
    }
    await alice.client.setRoomTopic(roomId, 'Among us')
    await say(alice, roomId, 'he is gone')
    const other = await meet('Elsewhere')
    await say(alice, other, 'after that')
    await hears(bob, other, 'after that')
    const received = JSON.stringify(receivedSince(bob, since, roomId))
    expect(received).not.toContain('Among us')
    expect(received).not.toContain('he is gone')
  })

  it('is taken from somebody: the kick comes, and nothing after it', async () => {
    const from = await meet('Thin ice')
    const since = bob.exchanges.length
    await alice.client.kick(from, bob.userId, 'it broke')
    await waitUntil('the kick', () => membershipOf(bob, from, bob) === KnownMembership.Leave)
    await alice.client.setRoomName(from, 'Without him')
    const other = await meet('Dry land')
    await hears(bob, other, await say(alice, other, 'safe').then(() => 'safe'))
    expect(JSON.stringify(receivedSince(bob, since, from))).not.toContain('Without him')
    expect(failures(alice)).toEqual([])
    expect(failures(bob)).toEqual([])
  })
})

describe('nothing is lost or doubled', () => {
  let open: string
  let secret: string

  beforeAll(async () => {
    open = await meet('Open')
    secret = await meet('Secret', true)
    await say(alice, secret, 'the first secret')
    await hears(bob, secret, 'the first secret')
    await say(bob, secret, 'the second secret')
    await hears(alice, secret, 'the second secret')
  })

  const secrets = (count: number) =>
    ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'].slice(0, count).map((which) => `the ${which} secret`)

  it('when an answer is lost on its way', { timeout: 60_000 }, async () => {
    bob.loseAnswerAbout(secret)
    await say(alice, secret, 'the third secret')
    await waitUntil('the loss', () => bob.exchanges.find(({ isLost }) => isLost))
    await say(alice, secret, 'the fourth secret')
    await hears(bob, secret, 'the fourth secret')
    expect(await readIn(bob, secret)).toEqual(secrets(4))
    const lost = bob.exchanges.findIndex(({ isLost }) => isLost)
    const { pos } = bob.exchanges[lost]!
    expect(bob.exchanges[lost + 1]!.pos).toBe(pos)
    expect(failures(bob)).toEqual([])
  })

  it('when the server starts again, also for a client whose connection it does not know any more', {
    timeout: 60_000,
  }, async () => {
    const since = [alice.exchanges.length, bob.exchanges.length] as const
    await server.database.db.query(
      'DELETE FROM sliding_connection c USING matrix_user u WHERE u.user_nid = c.user_nid AND u.user_id = $1',
      [bob.userId],
    )
    await server.restart()
    await say(alice, secret, 'the fifth secret')
    await say(alice, open, 'good morning')
    await hears(bob, secret, 'the fifth secret')
    await hears(bob, open, 'good morning')
    await say(bob, secret, 'the sixth secret')
    await hears(alice, secret, 'the sixth secret')
    expect(await readIn(alice, secret)).toEqual(secrets(6))
    await waitUntil('no echo any more', () => timelineOf(bob, secret).every(({ status }) => status === null))
    expect(await readIn(bob, secret)).toEqual(secrets(6))
    expect(alice.exchanges.slice(since[0]).filter(({ status }) => status === 400)).toEqual([])
    expect(failures(bob)).toEqual(['400 M_UNKNOWN_POS'])
    const ids = idsOf(bob, open)
    expect(new Set(ids).size).toBe(ids.length)
  })
})
