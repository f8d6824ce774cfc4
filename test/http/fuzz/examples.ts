import type { Endpoint } from '../../../src/http/endpoint.ts'
import { PASSWORD } from '../../support/api.ts'
import type { SchemaNode } from './body.ts'
import { type Actor, OWNED, type Scene } from './world.ts'

/** State that anyone's program may keep. */
export const PLAIN_STATE = 'org.example.state'

/** State whose content the server reads, and some that it does not. */
const STATE_CONTENT: Readonly<Record<string, object>> = {
  'm.room.power_levels': {
    users: { '@owner:localhost': 100 },
    users_default: 0,
    events: { 'm.room.name': 50 },
    events_default: 0,
    state_default: 50,
    ban: 50,
    kick: 50,
    redact: 50,
    invite: 0,
    notifications: { room: 50 },
  },
  'm.room.join_rules': { join_rule: 'public', allow: [{ type: 'm.room_membership', room_id: '!x:localhost' }] },
  'm.room.canonical_alias': { alias: '#nowhere:localhost', alt_aliases: ['#nowhere:localhost'] },
  'm.room.history_visibility': { history_visibility: 'shared' },
  'm.room.guest_access': { guest_access: 'can_join' },
  'm.room.name': { name: 'a room' },
  'm.room.topic': { topic: 'a topic', 'm.topic': { 'm.text': [{ body: 'a topic' }] } },
  'm.room.avatar': { url: 'mxc://localhost/x' },
  'm.room.encryption': { algorithm: 'm.megolm.v1.aes-sha2', rotation_period_ms: 1 },
  'm.room.create': { room_version: '12', 'm.federate': true },
  'm.room.server_acl': { allow: ['*'], deny: [], allow_ip_literals: true },
  'm.room.tombstone': { body: 'gone', replacement_room: '!x:localhost' },
  'm.room.third_party_invite': { display_name: 'x', public_key: 'x', key_validity_url: 'x', public_keys: [] },
  'm.room.member': { membership: 'join', displayname: 'x', avatar_url: 'mxc://localhost/x', reason: 'x' },
  [PLAIN_STATE]: { anything: { at: ['all', 1, null] } },
}

export const STATE_TYPES = Object.keys(STATE_CONTENT)

const EVENT_FILTER = { limit: 5, types: ['m.*'], not_types: ['x'], senders: ['@a:b'], not_senders: ['@a:b'] }
const ROOM_FILTER = { ...EVENT_FILTER, rooms: ['!x'], not_rooms: ['!x'], contains_url: true, lazy_load_members: true }
export const FILTER = {
  event_fields: ['content.body', 'a\\.b'],
  event_format: 'client',
  presence: EVENT_FILTER,
  account_data: EVENT_FILTER,
  room: {
    rooms: ['!x'],
    not_rooms: ['!x'],
    include_leave: true,
    timeline: ROOM_FILTER,
    state: ROOM_FILTER,
    ephemeral: ROOM_FILTER,
    account_data: ROOM_FILTER,
  },
}
export const EVENT_FILTERS = { ...ROOM_FILTER, include_redundant_members: true, unread_thread_notifications: true }

/** The value of a key wherever a schema has it. */
function keyExamples(
  { roomId, eventId, backupVersion, accounts, contact, fresh }: Scene,
  path: string,
): Readonly<Record<string, unknown>> {
  const isOwned = path.startsWith('C/account/password')
  return {
    email: isOwned ? OWNED.email : `${fresh()}@example.org`,
    country: 'GB',
    phone_number: isOwned ? `+${OWNED.msisdn}` : '07400 123456',
    next_link: 'https://app.example.org/',
    sid: path.endsWith('/add') ? contact.addSid : contact.bindSid,
    id_server: 'localhost',
    id_access_token: contact.identityToken,
    user_id: accounts.stranger.userId,
    room_id: roomId,
    'm.fully_read': eventId,
    'm.read': eventId,
    'm.read.private': eventId,
    typing: true,
    timeout: 1000,
    visibility: 'private',
    preset: 'private_chat',
    room_version: '12',
    new_version: '12',
    additional_creators: [accounts.member.userId],
    room_alias_name: fresh(),
    invite: [accounts.member.userId],
    creation_content: { type: 'm.space', 'm.federate': true, additional_creators: ['@bystander:localhost'] },
    initial_state: [
      { type: 'm.room.topic', state_key: '', content: { topic: 'x' } },
      { type: 'm.room.join_rules', content: STATE_CONTENT['m.room.join_rules'] },
    ],
    // The creators of a room may not be named.
    power_level_content_override: { ...STATE_CONTENT['m.room.power_levels'], users: { '@nobody:localhost': 50 } },
    presence: 'online',
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user: 'stranger' },
    user: 'stranger',
    username: fresh(),
    password: PASSWORD,
    new_password: PASSWORD,
    devices: ['GONE'],
    thread_id: 'main',
    limit: 5,
    version: backupVersion,
    algorithm: 'm.megolm_backup.v1.curve25519-aes-sha2',
    filter: { generic_search_term: 'fuzz', room_types: ['m.space', null] },
    ...(path === 'C/pushers/set' && { kind: 'http', data: { url: 'https://push.invalid/_matrix/push/v1/notify' } }),
  }
}

/** A value that a schema accepts. */
function exampleOf(schema: SchemaNode, name: string, known: Readonly<Record<string, unknown>>): unknown {
  if (Object.hasOwn(known, name)) return known[name]
  if (schema.anyOf) return exampleOf(schema.anyOf[0]!, name, known)
  if ('const' in schema) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.properties) {
    return Object.fromEntries(
      Object.entries(schema.properties).map(([key, inner]) => [key, exampleOf(inner, key, known)]),
    )
  }
  if (schema.type === 'array') return []
  if (schema.type === 'object') return {}
  if (schema.type === 'boolean') return true
  return schema.type === 'integer' || schema.type === 'number' ? 1 : 'x'
}

/** Optional keys whose values nobody could make up. */
const SIGNED_BY_OTHERS: ReadonlySet<string> = new Set([
  ...['guest_access_token', 'third_party_signed'],
  ...['master_key', 'self_signing_key', 'user_signing_key'],
])

/** Who is there to be sent away, or to be let in again. */
const TARGETS: Readonly<Record<string, string>> = { kick: '@member:localhost', unban: '@banned:localhost' }

/** A body that the endpoint would accept, for a state event of this type where it takes state. */
export function bodyExample({ path, options }: Endpoint, scene: Scene, actor: Actor, stateType: string): object {
  const { userId } = scene.accounts[actor]
  if (path.includes('/state/')) return STATE_CONTENT[stateType]!
  if (path.endsWith('/filter')) return FILTER
  if (path.startsWith('C/profile/')) return { displayname: 'x', avatar_url: 'mxc://localhost/x', 'm.tz': 'UTC' }
  if (path === 'C/search') return { search_categories: { room_events: { search_term: 'hello' } } }
  if (path.endsWith('/subscription') || path.endsWith('/tags/{tag}')) return {}
  if (path.includes('/send/')) return { msgtype: 'm.text', body: 'x', 'm.mentions': { user_ids: [userId], room: true } }
  if (path.includes('/redact/')) return { reason: 'x', redacts: scene.eventId }
  const target = TARGETS[path.slice(path.lastIndexOf('/') + 1)]
  const known = { ...keyExamples(scene, path), ...(target && { user_id: target }) }
  const whole = exampleOf(options.body as SchemaNode, '', known) as Record<string, unknown>
  const body = Object.fromEntries(Object.entries(whole).filter(([key]) => !SIGNED_BY_OTHERS.has(key)))
  if (!options.uia) return body
  // Whom it worked for would be gone from the world.
  const secret = path === 'C/account/deactivate' ? `not ${PASSWORD}` : PASSWORD
  const password = { type: 'm.login.password', identifier: { type: 'm.id.user', user: userId }, password: secret }
  return { ...body, auth: path === 'C/register' ? { type: 'm.login.dummy' } : password }
}

/** Path parameters that lead somewhere. */
export function pathExample(name: string, path: string, scene: Scene, actor: Actor, stateType: string): string {
  const isOther = path.includes('/presence/') && path.startsWith('GET')
  const values: Readonly<Record<string, string>> = {
    roomId: path.endsWith('/forget') ? scene.leftRoomId : scene.roomId,
    roomIdOrAlias: path.includes('/knock/') ? scene.knockableId : scene.alias,
    roomAlias: path.startsWith('PUT') ? `#${scene.fresh()}:localhost` : scene.alias,
    userId: scene.accounts[isOther ? 'member' : actor].userId,
    eventId: scene.eventId,
    eventType: path.includes('/state/') ? stateType : 'm.room.message',
    stateKey: stateType === 'm.room.member' ? scene.accounts[actor].userId : '',
    txnId: scene.fresh(),
    type: 'org.example.data',
    keyName: 'displayname',
    deviceId: scene.accounts[actor].deviceId,
    filterId: scene.filterId,
    version: scene.backupVersion,
    sessionId: 'session',
    delayId: 'nothing',
    action: 'restart',
    rendezvousId: 'nowhere',
    kind: 'override',
    ruleId: path.startsWith('GET') ? '.m.rule.master' : scene.ruleId,
    receiptType: 'm.read',
    tag: 'm.favourite',
    relType: 'm.thread',
    serverName: 'localhost',
    mediaId: path.startsWith('PUT media/') ? scene.emptyMediaId : scene.mediaId,
    fileName: 'x.png',
    protocol: 'nowhere',
    appserviceId: 'nobody',
    networkId: 'nowhere',
    id: 'x'.repeat(43),
    provider: 'nobody',
    next: Buffer.from('/_hearth/account').toString('base64url'),
  }
  const value = values[name]
  if (value === undefined) throw new Error(`no example for {${name}} of ${path}`)
  return value
}

/** Query parameters that a call is made with when nothing is wrong with it. */
export function queryExample(name: string, path: string, scene: Scene): string | undefined {
  const values: Readonly<Record<string, string>> = {
    dir: 'b',
    ts: String(Number.MAX_SAFE_INTEGER),
    username: scene.fresh(),
    version: scene.backupVersion,
    token: 'x',
    user_id: scene.accounts.stranger.userId,
    limit: '5',
    timeout: '0',
    width: '32',
    height: '32',
    method: 'scale',
    ...(path === 'C/keys/changes' && { from: scene.syncToken, to: scene.syncToken }),
    filter: JSON.stringify(path.endsWith('/sync') ? FILTER : EVENT_FILTERS),
  }
  return values[name]
}
