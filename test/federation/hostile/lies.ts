import { randomBytes } from 'node:crypto'
import type { UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { signEvent } from '../../../src/core/signing/event-hash.ts'
import { signJson } from '../../../src/core/signing/json-signature.ts'
import { type SigningKey, signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import type { Json } from '../../support/api.ts'
import type { TlsRequest } from '../../support/tls-server.ts'

/** What a lie may speak of. */
export interface About {
  readonly peer: { readonly name: string; readonly key: SigningKey; readonly eve: UserId }
  /** Who asks, in its own words; empty when it does not say. */
  readonly home: string
  readonly request: TlsRequest
  /** What the lie was told with. */
  readonly detail: Json
}

/** What it says instead of what an honest server would say; nothing for a 404. */
export type Lie = (honest: Json, about: About) => Json

const stranger = signingKeyFromSeed('ed25519:sim', randomBytes(32))

const withEvent =
  (change: (event: Json, about: About) => JsonObject | null): Lie =>
  (honest, about) => ({ ...honest, event: change(honest.event, about) })
const withContent = (content: Json): Lie => withEvent((event) => ({ ...event, content }))

/** Whatever there is, and nothing of the kind that was asked for. */
const NOTHINGS: Readonly<Record<string, Lie>> = {
  'no object': () => [],
  nothing: () => null,
}

/** Templates that no honest server would propose for what was asked. */
const templates = (membership: string): Readonly<Record<string, Lie>> => ({
  ...NOTHINGS,
  'no event': (honest) => ({ room_version: honest.room_version }),
  'an event that is text': (honest) => ({ ...honest, event: membership }),
  'another type': withEvent((event) => ({ ...event, type: 'm.room.power_levels' })),
  'another sender': withEvent((event) => ({ ...event, sender: '@other:elsewhere.test' })),
  'another user of ours': withEvent((event, { home }) => ({
    ...event,
    sender: `@bob:${home}`,
    state_key: `@bob:${home}`,
  })),
  'another state key': withEvent((event, { peer }) => ({ ...event, state_key: peer.eve })),
  'no state key': withEvent(({ state_key: _, ...event }) => event),
  'another room': withEvent((event, { peer }) => ({ ...event, room_id: `!other:${peer.name}` })),
  'another membership': withContent({ membership: membership === 'join' ? 'ban' : 'join' }),
  'an invitation of somebody': withEvent((event, { peer }) => ({
    ...event,
    state_key: peer.eve,
    content: { membership: 'invite' },
  })),
  'content that is text': withContent(membership),
  'a place in no room': withEvent(({ prev_events: _, ...event }) => event),
  'prev_events of another version': withEvent((event) => ({ ...event, prev_events: [['$a:b', { sha256: 'c' }]] })),
  'auth_events of another version': withEvent((event) => ({ ...event, auth_events: [['$a:b', { sha256: 'c' }]] })),
  'more auth_events than there may be': withEvent((event) => ({ ...event, auth_events: Array(11).fill('$a') })),
  'a depth below nothing': withEvent((event) => ({ ...event, depth: -1 })),
  'a version that nobody knows': (honest) => ({ ...honest, room_version: 'evil' }),
  'a version that is a number': (honest) => ({ ...honest, room_version: 11 }),
})

/** Right where it must be, and with much that nobody asked for. */
const withMore: Lie = (honest) => {
  const more = { displayname: 'Mallory', is_admin: true, third_party_invite: {}, 'm.relates_to': {} }
  const content = { ...honest.event.content, ...more }
  return { ...honest, event: { ...honest.event, redacts: '$x', unsigned: {}, hashes: {}, content } }
}

const without =
  (...types: readonly string[]): Lie =>
  (honest) => ({ ...honest, state: honest.state.filter((one: Json) => !types.includes(one.type)) })
const altered =
  (change: (event: Json, about: About) => Json): Lie =>
  (honest, about) => {
    const each = (one: Json) => change(one, about)
    return { ...honest, state: honest.state.map(each), auth_chain: honest.auth_chain.map(each) }
  }

/** What is told of a room, so that it is not to be believed. */
const ROOMS: Readonly<Record<string, Lie>> = {
  ...NOTHINGS,
  'no state': (honest) => ({ ...honest, state: [] }),
  'state that is text': (honest) => ({ ...honest, state: 'all of it', auth_chain: 'trust me' }),
  'state without the create event': without('m.room.create'),
  'events that nobody signed': altered(({ signatures: _, ...event }) => event),
  'events signed with a key that is not its own': altered((event, { peer }) =>
    signEvent(roomVersion('11')!, { ...event, signatures: {} }, peer.name as never, stranger),
  ),
  'events of another room': altered((event) => ({ ...event, room_id: '!other:elsewhere.test' })),
  'an auth chain that is cut': (honest, about) => ({
    ...without('m.room.join_rules', 'm.room.create')(honest, about),
    auth_chain: [],
  }),
  'a room that its rules shut us out of': without('m.room.join_rules'),
}

/** An invitation that comes back, and is not the one that was signed. */
const INVITATIONS: Readonly<Record<string, (event: Json, about: About & { version: string }) => Json>> = {
  'no object': () => [],
  nothing: () => null,
  'ours, without a signature of its own': (event) => event,
  'signed with a key that is not its own': (event, about) => signed(event, about, stranger),
  'signed in the name of another server': (event, about) => signed(event, about, about.peer.key, 'elsewhere.test'),
  'for another room': (event, about) => signed({ ...event, room_id: '!other:elsewhere.test' }, about),
  'of somebody else': (event, about) => signed({ ...event, state_key: `@other:${about.peer.name}` }, about),
  'by somebody else': (event, about) => signed({ ...event, sender: about.peer.eve }, about),
  'of another type': (event, about) => signed({ ...event, type: 'm.room.name' }, about),
  'with another membership': (event, about) => signed({ ...event, content: { membership: 'join' } }, about),
  'with other references': (event, about) => signed({ ...event, prev_events: [], auth_events: [] }, about),
}

function signed(event: Json, { peer, version }: About & { version: string }, key = peer.key, name = peer.name): Json {
  return signEvent(roomVersion(version)!, event, name as never, key)
}

const each = <From, To>(all: Readonly<Record<string, From>>, change: (one: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(all).map(([name, one]) => [name, change(one)]))

/** What a server says of its own keys. Whatever it is, it is signed. */
const KEYS: Readonly<Record<string, (honest: Json, about: About) => Json>> = {
  'nothing but the truth': (honest) => honest,
  'keys that are valid for ever': (honest) => ({ ...honest, valid_until_ts: Number.MAX_SAFE_INTEGER }),
  'keys that ran out long ago': (honest) => ({ ...honest, valid_until_ts: 1 }),
  'keys valid until a text': (honest) => ({ ...honest, valid_until_ts: 'for ever' }),
  'keys valid until before time': (honest) => ({ ...honest, valid_until_ts: -1 }),
  'the name of another server': (honest) => ({ ...honest, server_name: 'elsewhere.test' }),
  'the name of ours': (honest, { detail }) => ({ ...honest, server_name: detail }),
  'no name': ({ server_name: _, ...honest }) => honest,
  'its key among the old ones alone': ({ verify_keys, ...honest }, { peer: { key } }) => ({
    ...honest,
    verify_keys: {},
    old_verify_keys: { [key.keyId]: { ...verify_keys[key.keyId], expired_ts: Date.now() - 1000 } },
  }),
  'a list of keys': (honest) => ({ ...honest, verify_keys: Object.values(honest.verify_keys) }),
  'a key of another kind': (honest, { peer: { key } }) => ({
    ...honest,
    verify_keys: { 'rsa:sim': honest.verify_keys[key.keyId] },
  }),
  'a key that is too short': (honest, { peer: { key } }) => ({
    ...honest,
    verify_keys: { [key.keyId]: { key: 'AAAA' } },
  }),
  'old keys': (honest, { detail }) => ({ ...honest, old_verify_keys: detail }),
}

/** By operation: what it may be told to say instead of the truth. */
export const LIES = {
  make_join: { ...templates('join'), more: withMore },
  make_leave: { ...templates('leave'), more: withMore },
  make_knock: { ...templates('knock'), more: withMore },
  send_join: ROOMS,
  send_knock: { 'what it is told to': (_honest, { detail }) => ({ knock_room_state: detail }) },
  invite: {
    ...each(
      INVITATIONS,
      (change): Lie =>
        (_honest, about) => {
          const { event, room_version: version } = JSON.parse(about.request.body)
          return { event: change(event, { ...about, version }) }
        },
    ),
    nobody: () => null,
  },
  invite_v1: each(
    INVITATIONS,
    (change): Lie =>
      (_honest, about) => [200, { event: change(JSON.parse(about.request.body), { ...about, version: '1' }) }],
  ),
  keys: each(
    KEYS,
    (change): Lie =>
      (honest, about) =>
        signJson(change(honest, about), about.peer.name, about.peer.key),
  ),
} satisfies Readonly<Record<string, Readonly<Record<string, Lie>>>>

export type Operation = keyof typeof LIES
