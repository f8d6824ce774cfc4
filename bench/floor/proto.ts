import { hash } from 'node:crypto'
import { createRequire } from 'node:module'
import Fastify from 'fastify'
import type pg from 'pg'
import { temporaryPostgres } from './postgres.ts'

/**
 * The least that a durable, signed send can cost here: parse, canonical JSON by template, content hash, event id, signature, and
 * one statement per batch with fsync before the answer. No authentication, no rules, no sync: what is missing to a real server's
 * figure is what those cost.
 */

const CREATE = `
  CREATE TABLE event (
    position bigint PRIMARY KEY, room_nid int NOT NULL, event_id text COLLATE "C" NOT NULL UNIQUE, sender text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL, depth bigint NOT NULL, json bytea NOT NULL);
  CREATE INDEX ON event (room_nid, position);
  CREATE INDEX ON event (room_nid, depth);
  CREATE TABLE transaction_id (
    token text COLLATE "C", txn_id text COLLATE "C", position bigint NOT NULL, PRIMARY KEY (token, txn_id));
  CREATE TABLE head (room_nid int PRIMARY KEY, position bigint NOT NULL) WITH (fillfactor = 70)`

const PERSIST = `
  WITH batch AS (
    SELECT * FROM unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[])
      AS b (position, room_nid, event_id, sender, token, txn_id, json)
  ), events AS (
    INSERT INTO event SELECT position, room_nid, event_id, sender, 'm.room.message', position, json FROM batch
  ), transactions AS (
    INSERT INTO transaction_id SELECT token, txn_id, position FROM batch
  )
  INSERT INTO head SELECT room_nid, max(position) FROM batch GROUP BY room_nid
    ON CONFLICT (room_nid) DO UPDATE SET position = excluded.position`

const MAX_BATCH = 512

interface Item {
  readonly position: number
  readonly roomNid: number
  readonly eventId: string
  readonly token: string
  readonly txnId: string
  readonly json: Buffer
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

type Sign = (message: Buffer) => string

const unpadded = (base64: string) => base64.slice(0, base64.indexOf('='))

/** sodium-native; a floor on slower signatures would not be the floor. */
function openSigner(): Sign {
  const sodium = createRequire(import.meta.url)('sodium-native')
  const publicKey = Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES)
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES)
  sodium.crypto_sign_keypair(publicKey, secretKey)
  const signature = Buffer.alloc(sodium.crypto_sign_BYTES)
  return (message) => {
    sodium.crypto_sign_detached(signature, message, secretKey)
    return unpadded(signature.toString('base64'))
  }
}

function openQueue(client: pg.Client) {
  const waiting: Item[] = []
  let isWriting = false

  async function drain(): Promise<void> {
    isWriting = true
    while (waiting.length > 0) {
      const batch = waiting.splice(0, MAX_BATCH)
      try {
        await persist(client, batch)
        for (const item of batch) item.resolve()
      } catch (error) {
        for (const item of batch) item.reject(error as Error)
      }
    }
    isWriting = false
  }

  return (item: Omit<Item, 'resolve' | 'reject'>) =>
    new Promise<void>((resolve, reject) => {
      waiting.push({ ...item, resolve, reject })
      if (!isWriting) {
        isWriting = true
        setImmediate(drain)
      }
    })
}

async function persist(client: pg.Client, batch: readonly Item[]): Promise<void> {
  const column = <Key extends keyof Item>(key: Key) => batch.map((item) => item[key])
  const senders = batch.map((item) => `@${item.token}:floor`)
  const values = [column('position'), column('roomNid'), column('eventId'), senders, column('token'), column('txnId')]
  await client.query({ name: 'persist', text: PERSIST, values: [...values, column('json')] })
}

/** The event's keys are known, so their order is written down instead of sorted. */
function buildEvent(sign: Sign, roomId: string, sender: string, type: string, content: string, position: number) {
  const start = '{"auth_events":["$create","$power_levels","$member"],"content":'
  const depth = `,"depth":${position},`
  const times = `"origin_server_ts":${Date.now()},"prev_events":["$${position}"],"room_id":${JSON.stringify(roomId)},`
  const from = `"sender":${JSON.stringify(sender)},`
  const end = `"type":${JSON.stringify(type)}}`
  const contentHash = unpadded(hash('sha256', start + content + depth + times + from + end, 'base64'))
  const hashes = `"hashes":{"sha256":"${contentHash}"},`
  const redacted = `${start}{}${depth}${hashes}${times}${from}${end}`
  const signatures = `"signatures":{"floor":{"ed25519:1":"${sign(Buffer.from(redacted))}"}},`
  const json = Buffer.from(start + content + depth + hashes + times + from + signatures + end)
  return { eventId: `$${hash('sha256', redacted, 'base64url')}`, json }
}

async function main(): Promise<void> {
  const postgres = await temporaryPostgres(CREATE)
  const enqueue = openQueue(postgres.client)
  const sign = openSigner()
  const rooms = new Map<string, number>()
  let position = 0
  const app = Fastify({ routerOptions: { maxParamLength: 512 } })
  app.put('/_matrix/client/v3/rooms/:roomId/send/:type/:txnId', async (request) => {
    const { roomId, type, txnId } = request.params as { roomId: string; type: string; txnId: string }
    const token = String(request.headers.authorization).slice('Bearer '.length)
    const roomNid = rooms.get(roomId) ?? rooms.size
    rooms.set(roomId, roomNid)
    position += 1
    const mine = position
    const { eventId, json } = buildEvent(sign, roomId, `@${token}:floor`, type, JSON.stringify(request.body), mine)
    await enqueue({ position: mine, roomNid, eventId, token, txnId, json })
    return { event_id: eventId }
  })
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  process.once('disconnect', () => {
    void app.close().then(postgres.remove)
  })
  process.send?.(address)
}

await main()
