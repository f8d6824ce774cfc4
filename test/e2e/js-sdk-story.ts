import './promise-with-resolvers.ts'
import {
  createClient,
  type EventType,
  KnownMembership,
  type MatrixClient,
  type MatrixEvent,
  MemoryStore,
  MsgType,
  Preset,
  ReceiptType,
  type Room,
} from 'matrix-js-sdk'
import { logger } from 'matrix-js-sdk/lib/logger.js'
import sharp from 'sharp'
import { expect } from 'vitest'
import { openApi, PASSWORD, register } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { newName } from './target.ts'

type Fetch = typeof globalThis.fetch

const OLD_MESSAGES = 25
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {}, getChild: () => silent }
Object.assign(logger, silent)

/** Two people talk through matrix-js-sdk, each seeing the other only by their own sync loop. */
export async function talkThroughJsSdk(baseUrl: string, fetchFn: Fetch): Promise<void> {
  const clients: MatrixClient[] = []
  const newClient = async (name: string, initialSyncLimit: number) => {
    const client = await startClient(baseUrl, fetchFn, name, initialSyncLimit)
    clients.push(client)
    return client
  }
  try {
    const [aliceName, bobName] = await registerTwo(baseUrl)
    const alice = await newClient(aliceName, 20)
    const bob = await newClient(bobName, 20)
    const roomId = await inviteAndJoin(alice, bob)
    await sendBothWays(alice, bob, roomId)
    await receiptAndTyping(alice, bob, roomId)
    await redactOne(alice, bob, roomId)
    await sharePicture(alice, bob, roomId, fetchFn)
    await paginateBack(alice, roomId, () => newClient(bobName, 5))
  } finally {
    for (const client of clients) client.stopClient()
  }
}

async function registerTwo(baseUrl: string): Promise<[string, string]> {
  const api = openApi(baseUrl)
  const names: [string, string] = [newName('alice'), newName('bob')]
  for (const name of names) await register(api, name)
  await api.close()
  return names
}

/** A device of somebody who is registered, after its first sync. Whoever starts it stops it. */
export async function startClient(
  baseUrl: string,
  fetchFn: Fetch,
  name: string,
  initialSyncLimit: number,
): Promise<MatrixClient> {
  const entrance = createClient({ baseUrl, fetchFn, logger: silent })
  const session = await entrance.loginRequest({
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user: name },
    password: PASSWORD,
  })
  const { access_token: accessToken, user_id: userId, device_id: deviceId } = session
  const store = new MemoryStore()
  const client = createClient({ baseUrl, fetchFn, logger: silent, accessToken, userId, deviceId, store })
  await client.startClient({ initialSyncLimit, lazyLoadMembers: true, pollTimeout: 5_000 })
  await waitUntil(`${userId}'s first sync`, () => client.getSyncState() !== null && client.isInitialSyncComplete())
  return client
}

async function inviteAndJoin(alice: MatrixClient, bob: MatrixClient): Promise<string> {
  const { room_id: roomId } = await alice.createRoom({ name: 'Hearthside', preset: Preset.PrivateChat })
  await alice.invite(roomId, bob.getSafeUserId())
  const invited = await waitUntil('the invitation', () => {
    const room = bob.getRoom(roomId)
    return room?.getMyMembership() === KnownMembership.Invite && room
  })
  expect(invited.name).toBe('Hearthside')
  await bob.joinRoom(roomId)
  await waitUntil('the join at both ends', () =>
    [alice, bob].every((client) => membershipOf(client, roomId, bob.getSafeUserId()) === KnownMembership.Join),
  )
  return roomId
}

const membershipOf = (client: MatrixClient, roomId: string, userId: string) =>
  client.getRoom(roomId)?.getMember(userId)?.membership

async function sendBothWays(alice: MatrixClient, bob: MatrixClient, roomId: string): Promise<void> {
  const { event_id: question } = await alice.sendTextMessage(roomId, 'is the fire lit?')
  const heard = await waitForText(bob, roomId, 'is the fire lit?')
  expect(heard.getId()).toBe(question)
  expect(heard.getSender()).toBe(alice.getSafeUserId())
  await bob.sendMessage(roomId, { msgtype: MsgType.Text, body: 'since noon' })
  await waitForText(alice, roomId, 'since noon')
  await waitUntil("the echo of Alice's own message", () => textsOf(alice, roomId).every((event) => !event.status))
  expect(bodiesOf(alice, roomId)).toEqual(['is the fire lit?', 'since noon'])
  expect(bodiesOf(bob, roomId)).toEqual(['is the fire lit?', 'since noon'])
}

async function receiptAndTyping(alice: MatrixClient, bob: MatrixClient, roomId: string): Promise<void> {
  const { event_id: eventId } = await alice.sendTextMessage(roomId, 'come and see')
  const unread = await waitForText(bob, roomId, 'come and see')
  const unreadCount = () => bob.getRoom(roomId)?.getUnreadNotificationCount()
  await waitUntil('an unread message', () => (unreadCount() ?? 0) > 0)
  await bob.sendReadReceipt(unread, ReceiptType.Read)
  await waitUntil('the read receipt', () => {
    return alice.getRoom(roomId)?.getEventReadUpTo(bob.getSafeUserId(), true) === eventId
  })
  await waitUntil('nothing unread', () => unreadCount() === 0)
  const isTyping = () => bob.getRoom(roomId)?.getMember(alice.getSafeUserId())?.typing
  await alice.sendTyping(roomId, true, 20_000)
  await waitUntil('the typing notice', () => isTyping())
  await alice.sendTyping(roomId, false, 0)
  await waitUntil('the end of typing', () => !isTyping())
}

async function redactOne(alice: MatrixClient, bob: MatrixClient, roomId: string): Promise<void> {
  const { event_id: slip } = await alice.sendTextMessage(roomId, 'a slip of the tongue')
  await waitForText(bob, roomId, 'a slip of the tongue')
  await alice.redactEvent(roomId, slip)
  const redacted = await waitUntil('the redaction', () => {
    const event = bob.getRoom(roomId)?.findEventById(slip)
    return event?.isRedacted() && event
  })
  expect(redacted.getContent()).toEqual({})
}

/** The picture is uploaded, told of in the room, and fetched with the token of who sees it there: whole, and small. */
async function sharePicture(alice: MatrixClient, bob: MatrixClient, roomId: string, fetchFn: Fetch): Promise<void> {
  const image = await sharp({ create: { width: 300, height: 200, channels: 3, background: 'orange' } })
    .png()
    .toBuffer()
  const file = new Blob([image], { type: 'image/png' })
  const { content_uri: url } = await alice.uploadContent(file, { name: 'fire.png', type: 'image/png' })
  expect((await alice.getMediaConfig(true))['m.upload.size']).toBeGreaterThan(image.length)
  await alice.setAvatarUrl(url)
  await alice.sendMessage(roomId, { msgtype: MsgType.Image, body: 'fire.png', url })
  const seen = (await waitForText(bob, roomId, 'fire.png')).getContent().url as string
  const fetchAs = async (address: string | null) => {
    const answer = await fetchFn(address!, { headers: { authorization: `Bearer ${bob.getAccessToken()}` } })
    return { name: answer.headers.get('content-disposition'), bytes: Buffer.from(await answer.arrayBuffer()) }
  }
  const whole = await fetchAs(bob.mxcUrlToHttp(seen, undefined, undefined, undefined, false, true, true))
  expect([whole.name, whole.bytes.equals(image)]).toEqual(['inline; filename="fire.png"', true])
  const small = await fetchAs(bob.mxcUrlToHttp(seen, 60, 60, 'crop', false, true, true))
  expect(await sharp(small.bytes).metadata()).toMatchObject({ width: 96, height: 96 })
}

/** A second device that got only the last few messages walks back to the beginning of the room. */
async function paginateBack(alice: MatrixClient, roomId: string, newDevice: () => Promise<MatrixClient>) {
  const sent = Array.from({ length: OLD_MESSAGES }, (_, index) => `old ${index}`)
  for (const text of sent) await alice.sendTextMessage(roomId, text)
  const device = await newDevice()
  const room = device.getRoom(roomId)!
  expect(bodiesOf(device, roomId)).toEqual(sent.slice(-5))
  while (!beginsWithCreation(room)) {
    const before = room.timeline.length
    await device.scrollback(room, 10)
    expect(room.timeline.length, 'scrollback must make progress').toBeGreaterThan(before)
  }
  expect(bodiesOf(device, roomId)).toEqual(['is the fire lit?', 'since noon', 'come and see', 'fire.png', ...sent])
  const ids = room.timeline.map((event) => event.getId())
  expect(new Set(ids).size).toBe(ids.length)
}

const beginsWithCreation = (room: Room) => room.timeline[0]?.getType() === ('m.room.create' satisfies `${EventType}`)

function textsOf(client: MatrixClient, roomId: string): MatrixEvent[] {
  const events = client.getRoom(roomId)?.timeline ?? []
  return events.filter((event) => event.getType() === 'm.room.message' && !event.isRedacted())
}

const bodiesOf = (client: MatrixClient, roomId: string) =>
  textsOf(client, roomId).map((event) => event.getContent().body)

const waitForText = (client: MatrixClient, roomId: string, body: string) =>
  waitUntil(`"${body}" at ${client.getSafeUserId()}`, () =>
    textsOf(client, roomId).find((event) => event.getContent().body === body),
  )
