import { hash } from 'node:crypto'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { JsonValue } from '../../core/json.ts'
import { type ClientMetadata, readClientMetadata } from '../../core/oauth/client-metadata.ts'
import type { Database } from '../../store/db/db.ts'
import {
  type ClientRow,
  countClients,
  countUnusedClients,
  deleteIdleClients,
  deleteUnusedClients,
  findClient,
  findClientByDigest,
  insertClient,
} from '../../store/oauth/clients.ts'
import type { Clock, Random } from '../clock.ts'
import {
  CLIENTS_REMOVED_AT_ONCE,
  MAX_CLIENTS,
  MAX_UNUSED_CLIENTS,
  MAX_UNUSED_CLIENTS_PER_NETWORK,
  NEW_CLIENT_SAFE_MS,
  UNUSED_CLIENT_KEPT_MS,
} from '../limits/oauth.ts'

export interface Client {
  readonly clientId: string
  readonly metadata: ClientMetadata
  readonly createdAt: number
}

/** Apps that people sign in with. Anybody may register one (RFC 7591). */
export interface Clients {
  /**
   * Registers a client. The same metadata gets the same id. `network` is that of the sender, as `networkOf` returns it.
   * @throws ClientMetadataError; ProtocolError `M_LIMIT_EXCEEDED` if too many wait for their first use
   */
  register(body: JsonValue, network: string): Promise<Client>
  find(clientId: string): Promise<Client | undefined>
}

const ID_BYTES = 18
const REMOVED_AT_ONCE = 100
/** Clients that were asked for lately: their length in JSON together, and how long they are kept. */
const ASKED_CHARS = 250_000
const ASKED_MS = 10_000
const CLIENT_ID = /^[\w-]{24}$/

function toClient({ client_id, metadata, created_at }: ClientRow): Client {
  return { clientId: client_id, metadata: JSON.parse(metadata) as ClientMetadata, createdAt: created_at }
}

function tooMany(): ProtocolError {
  const error = 'Too many apps are registered here. Try again later.'
  return new ProtocolError('M_LIMIT_EXCEEDED', error, { extra: { retry_after_ms: UNUSED_CLIENT_KEPT_MS / 24 } })
}

export function createClients(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
}): Clients {
  const { db, clock, random } = deps

  /** One sign-in asks for its client many times. Clients never change; for one that was removed meanwhile, no session is made. */
  const asked = createCache<string, Client>(ASKED_CHARS, {
    sizeOf: ({ metadata }) => JSON.stringify(metadata).length,
    ttl: ASKED_MS,
  })

  /** From many networks at once, nobody can keep others out for long. */
  async function makeRoom(): Promise<boolean> {
    return (await db.tx((tx) => deleteUnusedClients(tx, clock.now() - NEW_CLIENT_SAFE_MS, REMOVED_AT_ONCE))) > 0
  }

  /** Also used ones give way once nobody has a session of them: an account could have used very many. */
  async function isRoomForOne(): Promise<boolean> {
    if ((await countClients(db, MAX_CLIENTS)) < MAX_CLIENTS) return true
    const before = clock.now() - NEW_CLIENT_SAFE_MS
    return (await db.tx((tx) => deleteIdleClients(tx, before, CLIENTS_REMOVED_AT_ONCE))) > 0
  }

  return {
    async register(body, network) {
      const metadata = readClientMetadata(body)
      const digest = hash('sha256', JSON.stringify(metadata), 'buffer')
      const known = await findClientByDigest(db, digest)
      if (known !== undefined) return toClient(known)
      const unused = await countUnusedClients(db, network, MAX_UNUSED_CLIENTS)
      if (unused.own >= MAX_UNUSED_CLIENTS_PER_NETWORK) throw tooMany()
      if (unused.all >= MAX_UNUSED_CLIENTS && !(await makeRoom())) throw tooMany()
      if (!(await isRoomForOne())) throw tooMany()
      const clientId = random.bytes(ID_BYTES).toString('base64url')
      const client = { clientId, digest, metadata, network, createdAt: clock.now() }
      return toClient(await db.tx((tx) => insertClient(tx, client)))
    },
    async find(clientId) {
      const known = asked.get(clientId)
      if (known !== undefined) return known
      const row = CLIENT_ID.test(clientId) ? await findClient(db, clientId) : undefined
      const client = row && toClient(row)
      if (client !== undefined) asked.set(clientId, client)
      return client
    },
  }
}
