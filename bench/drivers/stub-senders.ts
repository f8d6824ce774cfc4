import { Pool } from 'undici'
import { buildEvent } from '../../src/core/event/build.ts'
import type { EventReference } from '../../src/core/event/format.ts'
import type { EventId, RoomId, UserId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import { requestText } from '../../src/core/signing/request-signature.ts'
import { createAuthority } from '../../test/support/certificate.ts'
import { userOf, VERSION } from '../federation/stub-room.ts'
import { openStubServers, type StubServer } from '../federation/stub-servers.ts'

/** A process that is some servers, each with a user in a room of the server under measurement, who send what they have. */

export interface StubSendersTask {
  readonly servers: number
}

export interface StubSendersReady {
  readonly caFile: string
}

export interface SendTask {
  readonly baseUrl: string
  readonly serverName: string
  /** One for each server. */
  readonly roomIds: readonly string[]
  readonly eventsEach: number
  readonly perTransaction: number
  /** Whether of every transaction two events stand side by side, which the one after them puts together. */
  readonly isForked: boolean
}

export interface SendResult {
  readonly seconds: number
  readonly transactionsMs: readonly number[]
  /** Events that were not taken, in words, the first few. */
  readonly complaints: readonly string[]
}

interface Sender {
  readonly server: StubServer
  send(method: string, path: string, body?: JsonObject | string): Promise<JsonObject>
}

let generation = 0

process.once('message', ({ servers: count }: StubSendersTask) => {
  const authority = createAuthority()
  process.on('disconnect', () => {
    authority.remove()
    process.exit(0)
  })
  openStubServers(authority, count, ({ path }) => (path.includes('/send/') ? ['{"pdus":{}}'] : undefined)).then(
    (servers) => {
      process.on('message', (task: SendTask) => {
        run(task, servers.all).then((result) => process.send?.(result), fail)
      })
      process.send?.({ caFile: authority.file } satisfies StubSendersReady)
    },
    fail,
  )
})

function fail(error: Error): void {
  console.error(error.message)
  process.exit(1)
}

async function run(task: SendTask, servers: readonly StubServer[]): Promise<SendResult> {
  const { eventsEach, perTransaction, isForked, roomIds } = task
  const pool = new Pool(task.baseUrl, { connections: servers.length })
  generation++
  const transactionsMs: number[] = []
  const complaints: string[] = []
  const queues = await Promise.all(
    servers.map(async (server, n) => {
      const sender = senderOf(pool, task, server)
      const texts = await writeHistory(sender, roomIds[n] as RoomId, userOf(servers, n), eventsEach, {
        perTransaction,
        isForked,
      })
      return { sender, texts }
    }),
  )
  const begun = performance.now()
  await Promise.all(
    queues.map(async ({ sender, texts }) => {
      for (let at = 0; at < texts.length; at += perTransaction) {
        const pdus = texts.slice(at, at + perTransaction).join()
        const { name } = sender.server
        const body = `{"edus":[],"origin":"${name}","origin_server_ts":${Date.now()},"pdus":[${pdus}]}`
        const started = performance.now()
        const answer = await sender.send('PUT', `v1/send/t${generation}-${at}`, body)
        transactionsMs.push(performance.now() - started)
        for (const [id, result] of Object.entries(answer.pdus as JsonObject)) {
          const error = (result as JsonObject).error
          if (error !== undefined && complaints.length < 5) complaints.push(`${id}: ${error}`)
        }
      }
    }),
  )
  const seconds = (performance.now() - begun) / 1_000
  await pool.destroy()
  return { seconds, transactionsMs, complaints }
}

function senderOf(pool: Pool, { serverName }: SendTask, server: StubServer): Sender {
  const { name, key } = server
  return {
    server,
    async send(method, path, body) {
      const uri = `/_matrix/federation/${path}`
      const text = typeof body === 'object' ? encodeCanonical(body) : body
      const content = text === undefined ? {} : { content: JSON.parse(text) as JsonObject }
      const signature = key.sign(
        requestText({ method, uri, origin: name, destination: serverName, ...content } as never),
      )
      const authorization = `X-Matrix origin="${name}",destination="${serverName}",key="${key.keyId}",sig="${signature}"`
      const answer = await pool.request({
        method: method as 'GET',
        path: uri,
        headers: { authorization, ...(text === undefined ? {} : { 'content-type': 'application/json' }) },
        body: text ?? null,
      })
      const said = (await answer.body.json()) as JsonObject
      if (answer.statusCode !== 200) throw new Error(`${method} ${uri}: ${answer.statusCode} ${JSON.stringify(said)}`)
      return said
    },
  }
}

/** The user joins, unless they have; what they say after that is made ahead of time, so that only its arrival is measured. */
async function writeHistory(
  { server, send }: Sender,
  roomId: RoomId,
  sender: UserId,
  events: number,
  { perTransaction, isForked }: { readonly perTransaction: number; readonly isForked: boolean },
): Promise<string[]> {
  const where = `${encodeURIComponent(roomId)}/${encodeURIComponent(sender)}`
  const template = (await send('GET', `v1/make_join/${where}?ver=${VERSION.id}`)).event as JsonObject
  let depth = template.depth as number
  let prev = template.prev_events as EventReference[]
  let cited = template.auth_events as EventReference[]
  const build = (type: string, content: JsonObject, stateKey?: string) => {
    const place = { depth: depth++, prev_events: prev, auth_events: cited, origin_server_ts: Date.now() }
    const said = { type, sender, room_id: roomId, content, ...(stateKey === undefined ? {} : { state_key: stateKey }) }
    return buildEvent(VERSION, { ...said, ...place }, server.name, server.key)
  }
  const joined = build('m.room.member', { membership: 'join' }, sender)
  await send('PUT', `v2/send_join/${encodeURIComponent(roomId)}/${encodeURIComponent(joined.eventId)}`, joined.json)
  const leaving = (await send('GET', `v1/make_leave/${where}`)).event as JsonObject
  cited = leaving.auth_events as EventReference[]
  prev = [joined.eventId]
  const texts: string[] = []
  let beside: EventId | undefined
  for (let n = 0; n < events; n++) {
    const { eventId, json } = build('m.room.message', { msgtype: 'm.text', body: `message ${n} of a history` })
    texts.push(json)
    const isFirstOfTwo = isForked && n % perTransaction === 20
    if (isFirstOfTwo) beside = eventId
    else {
      prev = beside === undefined ? [eventId] : [beside, eventId]
      beside = undefined
    }
  }
  return texts
}
