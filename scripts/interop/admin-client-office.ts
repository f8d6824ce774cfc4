import { createHmac } from 'node:crypto'
import { Client } from 'pg'
import {
  type Account,
  type Api,
  createRoom,
  join,
  openApi,
  PASSWORD,
  register,
  sendText,
} from '../../test/support/api.ts'
import type { ChildServer } from '../../test/support/child-server.ts'

export const ADMIN_NAME = 'boss'
export const SHARED_SECRET = 'a secret that administrators share'

/** What there is to look at. */
export interface Office {
  readonly roomId: string
  readonly spaceId: string
  /** A user with sessions, rooms, files, a pusher, account data and reports. */
  readonly reporter: string
  readonly eventReport: number
  readonly userReport: number
  readonly registrationToken: string
  readonly destination: string
}

async function administrator(api: Api): Promise<Account> {
  const path = '/_synapse/admin/v1/register'
  const { nonce } = await api.call('GET', path)
  const mac = createHmac('sha1', SHARED_SECRET).update([nonce, ADMIN_NAME, PASSWORD, 'admin'].join('\0')).digest('hex')
  const body = { nonce, username: ADMIN_NAME, password: PASSWORD, admin: true, mac }
  const made = await api.call('POST', path, { body })
  return { userId: made.user_id, token: made.access_token, deviceId: made.device_id }
}

const enc = encodeURIComponent

/** Fills a server with something of each kind that administration tools show. */
export async function settle(server: ChildServer): Promise<Office> {
  const api = openApi(server.baseUrl)
  const boss = await administrator(api)
  const [alice, mallory] = [await register(api, 'alice'), await register(api, 'mallory')]
  const roomId = await createRoom(api, alice.token, {
    ...{ name: 'Garden', topic: 'Things that grow', room_alias_name: 'garden' },
    ...{ preset: 'public_chat', visibility: 'public' },
  })
  const spaceId = await createRoom(api, alice.token, { name: 'Park', creation_content: { type: 'm.space' } })
  const child = `/rooms/${enc(spaceId)}/state/m.space.child/${enc(roomId)}`
  await api.call('PUT', child, { token: alice.token, body: { via: [server.serverName] } })
  await join(api, mallory.token, roomId)
  const spam = await sendText(api, mallory.token, roomId, 's1', 'Buy this!')
  await sendText(api, alice.token, roomId, 'a1', 'Please stop.')
  await fillAccount(server, api, alice, roomId)
  const threepids = [{ medium: 'email', address: 'alice@example.org' }]
  await api.call('PUT', `/_synapse/admin/v2/users/${enc(alice.userId)}`, { token: boss.token, body: { threepids } })
  const reason = { token: alice.token, body: { reason: 'It is spam.' } }
  await api.call('POST', `/rooms/${enc(roomId)}/report/${enc(spam)}`, reason)
  await api.call('POST', `/users/${enc(mallory.userId)}/report`, reason)
  await haveFarServer(server, roomId)
  const ask = (path: string, body?: object) =>
    api.call(body === undefined ? 'GET' : 'POST', `/_synapse/admin/v1/${path}`, { token: boss.token, body })
  const { token: registrationToken } = await ask('registration_tokens/new', { uses_allowed: 3 })
  const { event_reports: events } = await ask('event_reports')
  const { user_reports: users } = await ask('user_reports')
  await api.close()
  return {
    ...{ roomId, spaceId, registrationToken, reporter: alice.userId, destination: 'far.example' },
    ...{ eventReport: events[0].id, userReport: users[0].id },
  }
}

/** Sets what an account may have. */
async function fillAccount(server: ChildServer, api: Api, alice: Account, roomId: string): Promise<void> {
  const { token, userId } = alice
  const put = (path: string, body: object) => api.call('PUT', path, { token, body })
  await put(`/user/${enc(userId)}/account_data/example.colours`, { sky: 'blue' })
  await put(`/user/${enc(userId)}/rooms/${enc(roomId)}/account_data/example.note`, { text: 'nice' })
  await put(`/profile/${enc(userId)}/displayname`, { displayname: 'Alice' })
  const upload = await fetch(`${server.baseUrl}/_matrix/media/v3/upload?filename=seed.png`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'image/png' },
    body: Buffer.from(PIXEL, 'base64'),
  })
  const { content_uri: uri } = (await upload.json()) as { content_uri: string }
  await put(`/profile/${enc(userId)}/avatar_url`, { avatar_url: uri })
  const picture = { msgtype: 'm.image', body: 'seed.png', url: uri, info: { mimetype: 'image/png' } }
  await put(`/rooms/${enc(roomId)}/send/m.room.message/p1`, picture)
  await api.call('POST', '/pushers/set', {
    token,
    body: {
      ...{ pushkey: 'key', kind: 'http', app_id: 'app', app_display_name: 'App', device_display_name: 'Phone' },
      ...{ lang: 'en', data: { url: 'https://push.example/_matrix/push/v1/notify' } },
    },
  })
}

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** A member of another server, past federation: tools list the servers that share rooms with this one. */
async function haveFarServer(server: ChildServer, roomId: string): Promise<void> {
  const client = new Client({ ...server.postgresSocket(), user: 'hearth', database: 'hearth' })
  await client.connect()
  try {
    await client.query(
      `WITH far AS (INSERT INTO matrix_user (user_id) VALUES ('@far:far.example') RETURNING user_nid)
       INSERT INTO room_member (user_nid, room_nid, membership, event_nid)
       SELECT far.user_nid, r.room_nid, 'join', (SELECT min(event_nid) FROM event e WHERE e.room_nid = r.room_nid)
       FROM far, room r WHERE r.room_id = $1`,
      [roomId],
    )
  } finally {
    await client.end()
  }
}
