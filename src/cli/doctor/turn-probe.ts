import { createHash, createHmac, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** An address of a TURN server, from a `turn:` or `turns:` URI (RFC 7065). */
export interface TurnPlace {
  readonly host: string
  readonly port: number
  readonly transport: 'udp' | 'tcp' | 'tls'
}

/** `granted`: the server relays for these credentials. `refused`: it does not, with the code of RFC 8656. */
export type TurnVerdict =
  | { readonly kind: 'granted' }
  | { readonly kind: 'refused'; readonly code: number }
  | { readonly kind: 'silent'; readonly detail: string }

const PATIENCE_MS = 5_000
const MAGIC = 0x2112a442
const ALLOCATE = 0x0003
const REFRESH = 0x0004
const SUCCESS = 0x0100
const HEADER_BYTES = 20
const INTEGRITY_BYTES = 24
const ATTRIBUTES = {
  username: 0x0006,
  integrity: 0x0008,
  error: 0x0009,
  lifetime: 0x000d,
  realm: 0x0014,
  nonce: 0x0015,
  transport: 0x0019,
}
const UDP = Buffer.from([17, 0, 0, 0])
const NOW = Buffer.alloc(4)

/** Undefined for `stun:` and what is no such URI. */
export function turnPlace(uri: string): TurnPlace | undefined {
  const [, scheme, host = '', port, transport = 'udp'] =
    /^(turns?):(\[[^\]]+\]|[^:?]+)(?::(\d+))?(?:\?transport=(udp|tcp))?$/.exec(uri) ?? []
  if (scheme === undefined) return undefined
  const isSecure = scheme === 'turns'
  return {
    host: host.replace(/^\[|\]$/g, ''),
    port: Number(port ?? (isSecure ? 5349 : 3478)),
    transport: isSecure ? 'tls' : (transport as 'udp' | 'tcp'),
  }
}

/** Asks a TURN server for an allocation, as a client in a call would, and gives it back at once. */
export async function probeTurn(
  place: TurnPlace,
  credentials: { readonly username: string; readonly password: string },
): Promise<TurnVerdict> {
  try {
    return await converse(place, (ask) => allocate(ask, credentials))
  } catch (error) {
    return { kind: 'silent', detail: (error as Error).message }
  }
}

type Ask = (request: Buffer) => Promise<Buffer>

async function allocate(
  ask: Ask,
  { username, password }: { username: string; password: string },
): Promise<TurnVerdict> {
  const transport = attribute(ATTRIBUTES.transport, UDP)
  const challenge = attributesOf(await ask(message(ALLOCATE, [transport])))
  const [realm, nonce] = [challenge.get(ATTRIBUTES.realm), challenge.get(ATTRIBUTES.nonce)]
  if (!realm || !nonce) return { kind: 'silent', detail: 'it asks for no credentials' }
  const key = createHash('md5').update(`${username}:${realm}:${password}`).digest()
  const named = [
    attribute(ATTRIBUTES.username, Buffer.from(username)),
    attribute(ATTRIBUTES.realm, realm),
    attribute(ATTRIBUTES.nonce, nonce),
  ]
  const answer = await ask(message(ALLOCATE, [transport, ...named], key))
  if (answer.readUInt16BE(0) !== (ALLOCATE | SUCCESS)) {
    const error = attributesOf(answer).get(ATTRIBUTES.error)
    return { kind: 'refused', code: error === undefined || error.length < 4 ? 0 : error[2]! * 100 + error[3]! }
  }
  await ask(message(REFRESH, [attribute(ATTRIBUTES.lifetime, NOW), ...named], key))
  return { kind: 'granted' }
}

function attribute(type: number, value: Buffer): Buffer {
  const padded = Buffer.alloc(4 + Math.ceil(value.length / 4) * 4)
  padded.writeUInt16BE(type, 0)
  padded.writeUInt16BE(value.length, 2)
  value.copy(padded, 4)
  return padded
}

/** A message of RFC 8489. @param key signs it */
function message(type: number, attributes: readonly Buffer[], key?: Buffer): Buffer {
  const body = Buffer.concat(attributes)
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(type, 0)
  header.writeUInt16BE(body.length + (key ? INTEGRITY_BYTES : 0), 2)
  header.writeUInt32BE(MAGIC, 4)
  randomBytes(12).copy(header, 8)
  const covered = Buffer.concat([header, body])
  if (!key) return covered
  return Buffer.concat([covered, attribute(ATTRIBUTES.integrity, createHmac('sha1', key).update(covered).digest())])
}

function attributesOf(answer: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>()
  for (let at = HEADER_BYTES; at + 4 <= answer.length; ) {
    const length = answer.readUInt16BE(at + 2)
    found.set(answer.readUInt16BE(at), answer.subarray(at + 4, at + 4 + length))
    at += 4 + Math.ceil(length / 4) * 4
  }
  return found
}

/** A way to send bytes to a server, and to hear what it answers. */
interface Line {
  send(bytes: Buffer): void
  close(): void
}

type Hear = (bytes: Buffer) => void
type Fail = (error: Error) => void

function openUdp({ host, port }: TurnPlace, hear: Hear, fail: Fail): Line {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  socket.on('message', hear).on('error', fail)
  return { send: (bytes) => socket.send(bytes, port, host), close: () => socket.close() }
}

function openStream({ host, port, transport }: TurnPlace, hear: Hear, fail: Fail): Line {
  const socket = transport === 'tls' ? connectTls({ host, port, servername: host }) : connect({ host, port })
  let received: Buffer = Buffer.alloc(0)
  socket.on('data', (piece: Buffer) => {
    received = Buffer.concat([received, piece])
    const whole = received.length < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + received.readUInt16BE(2)
    if (received.length < whole) return
    hear(received.subarray(0, whole))
    received = received.subarray(whole)
  })
  socket.on('error', fail).on('end', () => fail(new Error('it closed the connection')))
  return { send: (bytes) => void socket.write(bytes), close: () => socket.destroy() }
}

/** One question after another, each waiting for its answer. */
async function converse<T>(place: TurnPlace, talk: (ask: Ask) => Promise<T>): Promise<T> {
  let waiting: { hear: Hear; fail: Fail } | undefined
  const open = place.transport === 'udp' ? openUdp : openStream
  const line = open(
    place,
    (bytes) => waiting?.hear(bytes),
    (error) => waiting?.fail(error),
  )
  const ask: Ask = (request) =>
    new Promise<Buffer>((hear, fail) => {
      waiting = { hear, fail }
      setTimeout(() => fail(new Error('no answer')), PATIENCE_MS).unref()
      line.send(request)
    })
  try {
    return await talk(ask)
  } finally {
    line.close()
  }
}
