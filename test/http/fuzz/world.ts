import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { pino } from 'pino'
import sharp from 'sharp'
import {
  type Account,
  type Api,
  createRoom,
  join,
  login,
  openApi,
  PASSWORD,
  register,
  sendText,
} from '../../support/api.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { watchWrites } from '../../support/watched-writes.ts'

export const ACTORS = ['owner', 'member', 'stranger', 'guest', 'nobody', 'unknown'] as const
/** In which state of authentication a request is made. */
export type Actor = (typeof ACTORS)[number]

/** What the requests of one endpoint may name. */
export interface Scene {
  readonly roomId: string
  /** One that the owner has left. */
  readonly leftRoomId: string
  /** One of the member's at which others may knock. */
  readonly knockableId: string
  readonly eventId: string
  readonly alias: string
  readonly filterId: string
  /** A push rule of the owner's, of kind `override`. */
  readonly ruleId: string
  /** A picture, and a place for a file that nobody has sent yet. */
  readonly mediaId: string
  readonly emptyMediaId: string
  readonly syncToken: string
  /** Of the owner's key backup. */
  readonly backupVersion: string
  readonly accounts: Readonly<Record<Actor, Account>>
  /** Validated sessions whose secret is `x`: of the homeserver for an address to add, and of the identity service. */
  readonly contact: { readonly addSid: string; readonly bindSid: string; readonly identityToken: string }
  /** A name that nothing has yet. */
  fresh(): string
}

/** Addresses of the owner's account. */
export const OWNED = { email: 'owner@example.org', msisdn: '447400100000' } as const

export interface World {
  readonly server: TestServer
  readonly api: Api
  /** A room with two members and something in it, and people whose tokens are good. */
  scene(): Promise<Scene>
  /** Tables whose rows have been changed since it was asked last: sightings of devices left out, and what was taken back. */
  written(): Promise<string[]>
  /** The accounts' tokens and their password. */
  readonly secrets: Set<string>
  log(): string
  /** A message by someone who takes part in nothing else. */
  bystanderSends(): Promise<void>
  close(): Promise<void>
}

/** The unstable paths of thread subscriptions. */
const FOLLOWED = '/_matrix/client/unstable/io.element.msc4306'

export const UNKNOWN_TOKEN = 'hearth_CANARYCANARYCANARYCANARYCANARYCANA_00000000'

async function guest(api: Api): Promise<Account> {
  const body = await api.call('POST', '/register?kind=guest', { body: {} })
  return { userId: body.user_id, token: body.access_token, deviceId: body.device_id }
}

/** Signs people in again whose session a case has ended, and keeps their tokens among the secrets. */
function castOf(api: Api, secrets: Set<string>) {
  const accounts = new Map<string, Account>()
  return async (name: string, make: () => Promise<Account>): Promise<Account> => {
    const known = accounts.get(name)
    if (known !== undefined) {
      const { status } = await api.request('GET', '/account/whoami', { token: known.token })
      if (status === 200) return known
    }
    const account = await make()
    accounts.set(name, account)
    secrets.add(account.token)
    return account
  }
}

/** @param values configuration beside what the scenes need */
export async function openWorld(values: object = {}): Promise<World> {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) })
  const outbox = await mkdtemp(joinPath(tmpdir(), 'hearth-fuzz-'))
  const server = await startServer(
    {
      limits: { max_sync_timeout_ms: 1000 },
      registration: { enabled: true },
      identity: { outbox },
      // What is sent later would look as if the next request had written it.
      calls: { delayed_events: { max_scheduled: 0 } },
      ...values,
    },
    { log },
  )
  const api = openApi(server.baseUrl)
  const secrets = new Set<string>([PASSWORD, UNKNOWN_TOKEN])
  const account = castOf(api, secrets)
  for (const name of ['owner', 'member', 'stranger', 'bystander']) await register(api, name)
  const bystander = await account('bystander', () => login(api, 'bystander'))
  const ownRoom = await createRoom(api, bystander.token)
  await ownAddresses(server)
  const writes = await watchWrites(server)
  let count = 0
  const fresh = () => `fuzz-${++count}`
  let files: Promise<string[]> | undefined

  async function scene(): Promise<Scene> {
    const [owner, member, stranger] = await Promise.all(
      ['owner', 'member', 'stranger'].map((name) => account(name, () => login(api, name))),
    )
    const accounts = {
      owner: owner!,
      member: member!,
      stranger: stranger!,
      guest: await account('guest', () => guest(api)),
      nobody: { userId: '@nobody:localhost', token: '', deviceId: 'NONE' },
      unknown: { userId: owner!.userId, token: UNKNOWN_TOKEN, deviceId: 'NONE' },
    }
    const name = fresh()
    const { token } = accounts.owner
    const roomId = await createRoom(api, token, { preset: 'public_chat', room_alias_name: name, name })
    await join(api, accounts.member.token, roomId)
    const eventId = await sendText(api, token, roomId, name, 'hello')
    const thread = `/thread/${encodeURIComponent(eventId)}/subscription`
    await api.call('PUT', `${FOLLOWED}/rooms/${encodeURIComponent(roomId)}${thread}`, { token, body: {} })
    const own = `/user/${encodeURIComponent(accounts.owner.userId)}`
    const room = `/rooms/${encodeURIComponent(roomId)}`
    const filter = { room: { timeline: { limit: 5 } } }
    const { filter_id } = await api.call('POST', `${own}/filter`, { token, body: filter })
    const rule = `/pushrules/global/override/${name}`
    await api.call('PUT', rule, { token, body: { conditions: [], actions: [] } })
    for (const place of [own, own + room]) {
      await api.call('PUT', `${place}/account_data/org.example.data`, { token, body: { x: 1 } })
    }
    await api.call('PUT', `${room}/state/org.example.state`, { token, body: { x: 1 } })
    await api.call('POST', `${room}/ban`, { token, body: { user_id: '@banned:localhost' } })
    const backup = { algorithm: 'm.megolm_backup.v1.curve25519-aes-sha2', auth_data: {} }
    const { version: backupVersion } = await api.call('POST', '/room_keys/version', { token, body: backup })
    const key = { first_message_index: 1, forwarded_count: 1, is_verified: false, session_data: {} }
    const keyPath = `/room_keys/keys/${encodeURIComponent(roomId)}/session?version=${backupVersion}`
    await api.call('PUT', keyPath, { token, body: key })
    files ??= filesOf(server, token)
    const [mediaId, emptyMediaId] = await files
    const contact = await contactOf(server, api, accounts.owner, name)
    secrets.add(contact.identityToken)
    const leftRoomId = await createRoom(api, token)
    await api.call('POST', `/rooms/${encodeURIComponent(leftRoomId)}/leave`, { token, body: {} })
    const initial_state = [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }]
    const knockableId = await createRoom(api, accounts.member.token, { initial_state })
    const { next_batch } = await api.call('GET', '/sync?timeout=0', { token })
    return {
      roomId,
      leftRoomId,
      knockableId,
      eventId,
      alias: `#${name}:localhost`,
      filterId: filter_id,
      ruleId: name,
      mediaId: mediaId!,
      emptyMediaId: emptyMediaId!,
      syncToken: next_batch,
      backupVersion,
      contact,
      accounts,
      fresh,
    }
  }

  return {
    server,
    api,
    scene,
    written: writes.read,
    secrets,
    log: () => lines.join(''),
    async bystanderSends() {
      await sendText(api, bystander.token, ownRoom, fresh(), 'still here')
    },
    async close() {
      await writes.close()
      await api.close()
      await server.close()
      await rm(outbox, { recursive: true })
    },
  }
}

async function ownAddresses({ database }: TestServer): Promise<void> {
  await database.db.tx((tx) =>
    tx.query(
      `INSERT INTO user_threepid (medium, address, user_nid, validated_at, added_at)
       SELECT medium, address, user_nid, 1, 1 FROM matrix_user, unnest($1::text[], $2::text[]) AS t (medium, address)
       WHERE user_id = '@owner:localhost'`,
      [Object.keys(OWNED), Object.values(OWNED)],
    ),
  )
}

/** The ids of a picture and of a place without a file. */
async function filesOf({ baseUrl }: TestServer, token: string): Promise<string[]> {
  const authorization = `Bearer ${token}`
  const picture = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const headers = { authorization, 'content-type': 'image/png' }
  const answers = await Promise.all([
    fetch(`${baseUrl}/_matrix/media/v3/upload`, { method: 'POST', headers, body: picture }),
    fetch(`${baseUrl}/_matrix/media/v1/create`, { method: 'POST', headers: { authorization } }),
  ])
  const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as { content_uri: string }[]
  return bodies.map(({ content_uri }) => content_uri.slice(content_uri.lastIndexOf('/') + 1))
}

/** Sessions as they are once the link of a mail was followed. */
async function contactOf({ database }: TestServer, api: Api, { userId, token }: Account, name: string) {
  const openId = await api.call('POST', `/user/${encodeURIComponent(userId)}/openid/request_token`, { token, body: {} })
  const identity = await api.call('POST', '/_matrix/identity/v2/account/register', { body: openId })
  const [addSid, bindSid] = [`${name}-add`, `${name}-bind`]
  await database.db.tx((tx) =>
    tx.query(
      `INSERT INTO identity_session (sid, realm, secret_hash, medium, address, token_hashes, send_attempt, wrong_tokens,
         created_at, validated_at, expires_at)
       SELECT sid, realm, $3, 'email', sid || '@example.org', '', 1, 0, $4::bigint, $4::bigint, $4::bigint + 3600000
       FROM unnest($1::text[], $2::text[]) AS t (sid, realm)`,
      [[addSid, bindSid], ['homeserver add', 'identity'], createHash('sha256').update('x').digest(), Date.now()],
    ),
  )
  return { addSid, bindSid, identityToken: identity.token as string }
}
