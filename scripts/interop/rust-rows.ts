import type { Api, Json } from '../../test/support/api.ts'
import { nameOf, OLD_MESSAGES, oldText, ROOM_COUNT, type Stage } from '../../test/support/rust-sdk/stage.ts'
import { waitUntil } from '../../test/support/wait.ts'
import type { Recorded, RecordingProxy } from './recording-proxy.ts'
import type { RustClients } from './rust-clients.ts'
import type { Row } from './rust-sdk.ts'
import { expect } from './seen.ts'

/** Two people whose clients are made of matrix-rust-sdk, the proxy that they reach the server through, and the server itself. */
export interface RustScene {
  readonly clients: RustClients
  readonly proxy: RecordingProxy
  readonly stage: Stage
  /** By the same proxy. */
  readonly api: Api
  enter(who: 'anna' | 'ben'): Promise<void>
  /** Ends the server's process without a word, and starts it again. */
  crash(): Promise<void>
  /** Has the server forget what it sent to the clients. */
  forgetConnections(): Promise<void>
}

const WITHIN_MS = 40_000
const SYNC = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync'

const until = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
  waitUntil(what, ask, { timeoutMs: WITHIN_MS, everyMs: 100 })

const listOf = ({ clients }: RustScene, who: string): Promise<Json> => clients.ask(who, 'list')
const look = ({ clients }: RustScene, who: string, room: string): Promise<Json> => clients.ask(who, 'look', { room })

async function roomOf(scene: RustScene, who: string, id: string): Promise<Json> {
  return (await listOf(scene, who)).rooms.find((room: Json) => room.id === id)
}

async function itemOf(scene: RustScene, who: string, room: string, text: string): Promise<Json> {
  const { items } = await look(scene, who, room)
  return items.find(({ body, isEcho }: Json) => body === text && !isEcho)
}

const untilItem = (scene: RustScene, who: string, room: string, text: string): Promise<Json> =>
  until(`"${text}", seen by ${who}`, () => itemOf(scene, who, room, text)).catch(async (error: Error) => {
    const { items } = await look(scene, who, room)
    const seen = items.slice(-5).map(({ body, isUnreadable }: Json) => (isUnreadable ? '(unreadable)' : body))
    throw new Error(`${error.message}; the last are ${seen.join(', ')}`)
  })

/** Both see it: the one who says it, without an echo, and the other. */
async function say(scene: RustScene, who: 'anna' | 'ben', room: string, text: string): Promise<Json> {
  await scene.clients.ask(who, 'send', { room, text })
  const [one, other] = await Promise.all([untilItem(scene, 'anna', room, text), untilItem(scene, 'ben', room, text)])
  expect('the same event for both', one.event === other.event)
  const { items } = await look(scene, 'anna', room)
  expect(`"${text}" is there once`, items.filter(({ body }: Json) => body === text).length === 1)
  return one
}

async function sayInSecret(scene: RustScene, who: 'anna' | 'ben', text: string): Promise<void> {
  const { wasEncrypted } = await say(scene, who, scene.stage.secret, text)
  expect('it was encrypted', wasEncrypted)
}

const sliding = ({ proxy }: RustScene): Recorded[] =>
  proxy.moments.flatMap((moment) =>
    moment.kind === 'end' && moment.request.path.startsWith(SYNC) ? moment.request : [],
  )

const answered = (scene: RustScene) => sliding(scene).filter(({ outcome }) => outcome === 'answered')

async function listInWindows(scene: RustScene): Promise<void> {
  await scene.enter('anna')
  const right = Array.from({ length: ROOM_COUNT - 2 }, (_, index) => nameOf(index)).toReversed()
  // The SDK puts rooms with messages first.
  const order = ['The hearth', 'Secrets', ...right]
  await until('all rooms in the list, the newest first', async () => {
    const { rooms, count } = await listOf(scene, 'anna')
    return count === ROOM_COUNT && rooms.map(({ name }: Json) => name).join() === order.join()
  })
  const windows = answered(scene).map(({ body }) => body.lists?.all_rooms?.ranges[0][1])
  expect(`windows grow (${windows})`, windows.includes(19) && windows.includes(ROOM_COUNT - 1))
  const sent = answered(scene).flatMap(({ answer }) => Object.keys(answer.rooms ?? {}))
  expect(`each room came once (${sent.length})`, sent.length === ROOM_COUNT && new Set(sent).size === ROOM_COUNT)
}

async function openRoom(scene: RustScene): Promise<void> {
  const { clients, stage } = scene
  const room = stage.talk
  await scene.enter('ben')
  await until('the rooms of Ben', async () => (await listOf(scene, 'ben')).rooms.length === 2)
  for (const who of ['anna', 'ben']) await clients.ask(who, 'open', { room })
  await untilItem(scene, 'anna', room, oldText(OLD_MESSAGES - 20))
  // Further back, the SDK fills the gap before the one message that the list had, and with it shuffles what it has.
  await until('the first message', async () => {
    await clients.ask('anna', 'back', { room })
    return itemOf(scene, 'anna', room, oldText(0))
  })
  const { items } = await look(scene, 'anna', room)
  const texts = items.flatMap(({ body }: Json) => body ?? [])
  const right = Array.from({ length: OLD_MESSAGES }, (_, index) => oldText(index))
  expect(`all ${OLD_MESSAGES} old messages, in order (${texts})`, texts.join() === right.join())
}

async function talk(scene: RustScene): Promise<void> {
  const room = scene.stage.talk
  await say(scene, 'anna', room, 'is the fire lit?')
  await say(scene, 'ben', room, 'since noon')
  const [newest] = (await listOf(scene, 'anna')).rooms
  expect('the room is the first of the list', newest.id === room)
}

async function edit(scene: RustScene): Promise<void> {
  const room = scene.stage.talk
  const { event } = await untilItem(scene, 'ben', room, 'since noon')
  await scene.clients.ask('ben', 'edit', { room, event, text: 'since ten' })
  const edited = await untilItem(scene, 'anna', room, 'since ten')
  expect('it is the same message', edited.event === event && edited.isEdited)
}

async function react(scene: RustScene): Promise<void> {
  const { clients, stage } = scene
  const room = stage.talk
  const { event } = await untilItem(scene, 'anna', room, 'since ten')
  const key = '🔥'
  const keys = async () => (await itemOf(scene, 'ben', room, 'since ten')).reactions[key] ?? []
  await clients.ask('anna', 'react', { room, event, key })
  await until('the reaction', async () => (await keys()).join() === stage.anna.userId)
  await clients.ask('anna', 'react', { room, event, key })
  await until('the end of the reaction', async () => (await keys()).length === 0)
}

async function read(scene: RustScene): Promise<void> {
  const { clients, stage } = scene
  const room = stage.talk
  const { event } = await say(scene, 'anna', room, 'come and see')
  await until('an unread message', async () => (await roomOf(scene, 'ben', room)).unread > 0)
  await clients.ask('ben', 'read', { room, event })
  await until('the receipt', async () => {
    const { readBy } = await itemOf(scene, 'anna', room, 'come and see')
    return readBy.includes(stage.ben.userId)
  })
  await until('nothing unread', async () => (await roomOf(scene, 'ben', room)).unread === 0)
}

async function type(scene: RustScene): Promise<void> {
  const { clients, stage } = scene
  const room = stage.talk
  const typing = async () => (await look(scene, 'anna', room)).typing.join()
  await clients.ask('ben', 'type', { room, on: true })
  await until('that Ben types', async () => (await typing()) === stage.ben.userId)
  await clients.ask('ben', 'type', { room, on: false })
  await until('that Ben types no more', async () => (await typing()) === '')
}

async function redact(scene: RustScene): Promise<void> {
  const room = scene.stage.talk
  const { event } = await say(scene, 'anna', room, 'a slip of the tongue')
  await scene.clients.ask('anna', 'redact', { room, event })
  await until('the redaction', async () => {
    const { items } = await look(scene, 'ben', room)
    return items.find((item: Json) => item.event === event)?.isRedacted
  })
}

async function comeAndGo(scene: RustScene): Promise<void> {
  const { api, clients, stage } = scene
  const body = { name: 'Late', preset: 'private_chat', invite: [stage.ben.userId] }
  const { room_id: room } = await api.call('POST', '/createRoom', { token: stage.anna.token, body })
  const is = (membership: string) => async () => (await roomOf(scene, 'ben', room))?.membership === membership
  await until('the invitation', is('Invited'))
  expect('the invitation has the name', (await roomOf(scene, 'ben', room)).name === 'Late')
  await clients.ask('ben', 'join', { room })
  await until('the join', async () => (await is('Joined')()) && (await roomOf(scene, 'ben', room)).members === 2)
  await clients.ask('ben', 'leave', { room })
  await until('that the room is gone', async () => (await roomOf(scene, 'ben', room)) === undefined)
  await until('that Anna is alone', async () => (await roomOf(scene, 'anna', room)).members === 1)
}

async function talkInSecret(scene: RustScene): Promise<void> {
  const { clients, stage } = scene
  for (const who of ['anna', 'ben']) await clients.ask(who, 'open', { room: stage.secret })
  expect('the room is encrypted', (await roomOf(scene, 'anna', stage.secret)).isEncrypted)
  await sayInSecret(scene, 'anna', 'the first secret')
  await sayInSecret(scene, 'ben', 'the second secret')
}

async function crash(scene: RustScene): Promise<void> {
  await scene.crash()
  await sayInSecret(scene, 'anna', 'the third secret')
  await sayInSecret(scene, 'ben', 'the fourth secret')
  const refused = answered(scene).filter(({ status }) => status === 400)
  expect(`no position was refused (${refused.length})`, refused.length === 0)
}

/** The answer with the keys is lost first, then the one with the message. */
async function loseAnswers(scene: RustScene): Promise<void> {
  const { clients, proxy, stage } = scene
  const isSync = ({ path }: Recorded) => path.startsWith(SYNC)
  const withKeys = proxy.lose((sent) => isSync(sent) && sent.answer?.extensions?.to_device?.events?.length > 0)
  // When a member has left, the next message gets a key of its own.
  await clients.ask('ben', 'leave', { room: stage.secret })
  await until('that Anna is alone', async () => (await roomOf(scene, 'anna', stage.secret)).members === 1)
  await clients.ask('ben', 'join', { room: stage.secret })
  for (const who of ['anna', 'ben']) {
    await until('the return', async () => (await roomOf(scene, who, stage.secret))?.members === 2)
  }
  const withMessage = proxy.lose((sent) => isSync(sent) && sent.answer?.rooms?.[stage.secret] !== undefined)
  await sayInSecret(scene, 'anna', 'the fifth secret')
  await Promise.all([withKeys, withMessage])
  await sayInSecret(scene, 'ben', 'the sixth secret')
}

/** With the connection, the SDK drops what was subscribed to on it: the app opens its room again. */
async function forget(scene: RustScene): Promise<void> {
  const { clients, stage } = scene
  await scene.forgetConnections()
  const refusals = () => answered(scene).filter(({ status }) => status === 400)
  const refused = await until('that both are refused', async () => refusals().length >= 2 && refusals())
  expect(
    'with M_UNKNOWN_POS',
    refused.every(({ answer }) => answer.errcode === 'M_UNKNOWN_POS'),
  )
  for (const who of ['anna', 'ben']) {
    await until(`the list of ${who}`, async () => {
      const { rooms, count } = await listOf(scene, who)
      return rooms.length === count
    })
    await clients.ask(who, 'open', { room: stage.secret })
  }
  await sayInSecret(scene, 'ben', 'the seventh secret')
  await sayInSecret(scene, 'anna', 'the eighth secret')
}

export const rustRows: readonly Row<RustScene>[] = [
  { name: 'Anna signs in and lists her 300 rooms, window after window', run: listInWindows },
  {
    name: 'Ben signs in; the room that both open shows its newest messages, and leads back to the first',
    run: openRoom,
  },
  { name: 'each sends, and the other receives', run: talk },
  { name: 'a message is edited', run: edit },
  { name: 'a reaction comes and goes', run: react },
  { name: 'a message is unread, then read', run: read },
  { name: 'one sees that the other types', run: type },
  { name: 'a message is redacted', run: redact },
  { name: 'Ben is invited, joins and leaves', run: comeAndGo },
  { name: 'each sends in an encrypted room, and the other receives', run: talkInSecret },
  { name: 'so they do after the server was killed and started again', run: crash },
  { name: 'so they do when answers are lost on their way', run: loseAnswers },
  { name: 'so they do when the server has forgotten what it sent them', run: forget },
]
