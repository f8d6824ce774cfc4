import { randomBytes } from 'node:crypto'
import { Pool } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ERROR_STATUS } from '../../../src/core/errors.ts'
import type { EventDraft } from '../../../src/core/event/build.ts'
import type { UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { expandPath } from '../../../src/core/paths.ts'
import type { Endpoint } from '../../../src/http/endpoint.ts'
import { goes, type Home, handOver, openPeer, type Peer, proposed } from '../../federation/hostile/peer.ts'
import { type Account, createRoom, sendText } from '../../support/api.ts'
import { SERVER_API } from '../../support/interfaces.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { type WatchedWrites, watchWrites } from '../../support/watched-writes.ts'
import { type SchemaNode, schemaOf } from './body.ts'
import { BODIES, type Dice, diceOf, JSON_VALUES, PATH_VALUES, QUERY_VALUES } from './values.ts'
import { type Answer, send } from './wire.ts'

/** `FUZZ_SEED=7 FUZZ_CASES=5000 npx vitest run test/http/fuzz/fuzz-federation.long.test.ts` tries other cases, and more of them. */
const SEED = Number(process.env.FUZZ_SEED ?? 20_190_611)
const CASES = Number(process.env.FUZZ_CASES ?? 30)

let street: Neighbourhood
let home: Neighbour
let peer: Peer
let alice: Account
let pool: Pool
let writes: WatchedWrites
/** Values that mean something, by the names of parameters and keys. */
let plausible: Readonly<Record<string, readonly unknown[]>>
/** Events that may be handed over, before they are signed, by operation. */
let drafts: Readonly<Record<string, EventDraft>>

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  peer = await openPeer(street.authority)
  pool = new Pool(home.server.baseUrl, { connections: 1, headersTimeout: 20_000 })
  alice = await home.person('alice')
  plausible = await furnish()
  writes = await watchWrites(home.server)
})

afterAll(async () => {
  await pool?.destroy()
  await writes?.close()
  await peer?.close()
  await street?.close()
})

const there = (): Home => ({ name: home.name, url: home.server.baseUrl })

const STEPS = ['join', 'leave', 'knock'] as const

/** What is right to hand over, by operation: of a user who may come in, of one who is in, of one who may knock, and an invitation. */
async function draftsOf(token: string): Promise<typeof drafts> {
  const rules = { type: 'm.room.join_rules', content: { join_rule: 'knock' } }
  const preset = 'public_chat'
  const room = await createRoom(home.api, token, { preset, room_version: '11' })
  const knocking = await createRoom(home.api, token, { preset, room_version: '11', initial_state: [rules] })
  const leaver = `@leaver:${peer.name}` as UserId
  await goes(peer, there(), 'join', room, leaver)
  const of = async (step: (typeof STEPS)[number]) => {
    const { body } = await proposed(
      peer,
      there(),
      step,
      step === 'knock' ? knocking : room,
      step === 'leave' ? leaver : peer.eve,
    )
    return [`send_${step}`, body.event] as const
  }
  const found = Object.fromEntries(await Promise.all(STEPS.map(of)))
  const invite = {
    ...{
      ...found.send_join,
      room_id: `!eves:${peer.name}`,
      state_key: alice.userId,
      content: { membership: 'invite' },
    },
    ...{ prev_events: [], auth_events: [] },
  }
  return { ...found, invite }
}

/** Rooms that the peer is in, may come into and knows nothing of, and events of them. */
async function furnish() {
  const { token } = alice
  const shared = await createRoom(home.api, token, { preset: 'public_chat', room_alias_name: 'shared' })
  const old = await createRoom(home.api, token, { preset: 'public_chat', room_version: '1' })
  const secret = await createRoom(home.api, token, { preset: 'private_chat' })
  const said = await sendText(home.api, token, shared, 'a', 'a')
  const joins = [await goes(peer, there(), 'join', shared), await goes(peer, there(), 'join', old)]
  const open = await createRoom(home.api, token, { preset: 'public_chat' })
  const { body: template } = await proposed(peer, there(), 'join', open)
  drafts = await draftsOf(token)
  const knocking = drafts.send_knock!.room_id!
  const rooms = [
    ...Array(6).fill(shared),
    old,
    old,
    open,
    knocking,
    knocking,
    secret,
    '!nowhere:localhost',
    `!${'x'.repeat(43)}`,
  ]
  const member = { type: 'm.room.member', sender: peer.eve, state_key: peer.eve, room_id: shared }
  const events = [said, said, ...joins, '$nothing', `$${'x'.repeat(43)}`]
  const claim = { mxid: peer.eve, token: 'x', signatures: { 'id.test': { 'ed25519:0': 'x' } } }
  return {
    roomId: rooms,
    room_id: rooms,
    eventId: events,
    event_id: events,
    v: events,
    latest_events: [events, [said]],
    earliest_events: [[], events],
    userId: [peer.eve, peer.eve, peer.eve, alice.userId],
    user_id: [alice.userId, peer.eve],
    mxid: [alice.userId, peer.eve],
    sender: [peer.eve, alice.userId],
    state_key: [peer.eve, alice.userId],
    serverName: [peer.name, home.name, 'localhost:1'],
    room_alias: [`#shared:${home.name}`, '#nothing:localhost'],
    room_version: ['12', '1', '99'],
    ver: ['12', '11', '11'],
    content: [
      { membership: 'join' },
      { membership: 'invite', third_party_invite: { display_name: 'x', signed: claim } },
    ],
    event: [template.event, peer.sign('12', template.event).pdu, member],
    pdus: [[], [template.event, 7, peer.sign('12', template.event).pdu], Array(51).fill({})],
    edus: [[], [{ edu_type: 'm.typing', content: { ...member, user_id: peer.eve, typing: true } }]],
    type: ['m.room.member', 'm.room.power_levels'],
    invites: [
      [
        {
          medium: 'email',
          address: 'a@b.c',
          mxid: alice.userId,
          room_id: shared,
          sender: alice.userId,
          signed: { ...claim, mxid: alice.userId },
        },
      ],
    ],
    server_keys: [{ [peer.name]: {} }, { [home.name]: { 'ed25519:x': { minimum_valid_until_ts: 1 } } }],
    device_keys: [{ [alice.userId]: [] }],
    one_time_keys: [{ [alice.userId]: { X: 'signed_curve25519' } }],
    limit: [10],
    dir: ['b', 'b', 'f'],
    ts: [2 ** 52],
    minimum_valid_until_ts: [1],
  } satisfies Record<string, readonly unknown[]>
}

const isEvent = ({ path }: Endpoint) => /v\d\/(send_|invite)/.test(path)

function text(schema: SchemaNode | undefined, name: string, dice: Dice): string {
  const known = plausible[name]
  if (dice.below(4) === 0 || (!known && !schema)) return dice.pick(JSON_VALUES)
  if (known) return JSON.stringify(dice.pick(known))
  if (schema!.type === 'array') return '["x"]'
  return schema!.type === 'integer' ? String(dice.below(5)) : '"x"'
}

const EVENT_KEYS = [
  ...['type', 'sender', 'state_key', 'room_id', 'content', 'depth', 'origin_server_ts', 'event_id'],
  ...['prev_events', 'auth_events', 'hashes', 'signatures', 'unsigned', 'redacts'],
]

function bodyOf(endpoint: Endpoint, dice: Dice): string | Buffer {
  if (dice.below(6) === 0) return dice.pick(BODIES)[1]
  const properties = schemaOf(endpoint.options.body)?.properties ?? {}
  const names = isEvent(endpoint) ? [...EVENT_KEYS, ...Object.keys(properties)] : Object.keys(properties)
  const whole = names.length === 0 ? ['mxid', 'invites', 'medium', 'address'] : names
  const members = whole
    .filter(() => dice.below(10) > 0)
    .map((name) => `${JSON.stringify(name)}:${text(properties[name], name, dice)}`)
  return `{${members.join()}}`
}

/** Signed as it should be, with at most one thing wrong in it, under its own id. */
function signedCase({ path }: Endpoint, operation: string, dice: Dice): Pick<Sent, 'uri' | 'body'> {
  const draft = drafts[operation]!
  const [name = 'type'] = dice.shuffle(EVENT_KEYS.filter((key) => key in draft))
  const twisted = dice.below(3) === 1 ? draft : { ...draft, [name]: JSON.parse(text(undefined, name, dice)) }
  const made = signedOr(draft, twisted as EventDraft, path.startsWith('F/v1/invite') ? '1' : '11')
  const pdu = made.pdu as JsonObject
  const body = path.startsWith('F/v2/invite') ? { room_version: '11', event: pdu, invite_room_state: [] } : pdu
  const params: Record<string, string> = { roomId: draft.room_id!, eventId: made.eventId }
  const { path: url } = dice.pick(expandPath(path))
  return {
    uri: url.replace(/:(\w+)/g, (_, key: string) => encodeURIComponent(params[key]!)),
    body: JSON.stringify(body),
  }
}

/** Some of what is odd nobody can sign. */
function signedOr(draft: EventDraft, twisted: EventDraft, version: string) {
  try {
    return peer.sign(version, twisted)
  } catch {
    return peer.sign(version, draft)
  }
}

function uriOf({ path, options }: Endpoint, dice: Dice): string {
  const paths = [path, ...(options.also ?? [])].flatMap((each) => expandPath(each))
  const filled = dice.pick(paths).path.replace(/:(\w+)/g, (_, name: string) => {
    const known = plausible[name]
    return known && dice.below(4) > 0 ? encodeURIComponent(String(dice.pick(known))) : dice.pick(PATH_VALUES)
  })
  const query = Object.keys(schemaOf(options.query)?.properties ?? {})
    .filter(() => dice.below(8) > 0)
    .map((name) => {
      const known = plausible[name]
      return `${name}=${known && dice.below(3) > 0 ? encodeURIComponent(String(dice.pick(known))) : dice.pick(QUERY_VALUES)}`
    })
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`
}

type Signing = 'well' | 'badly' | 'not at all' | 'for another'

function authorization(
  method: string,
  uri: string,
  body: string | Buffer | undefined,
  how: Signing,
): string | undefined {
  if (how === 'not at all') return undefined
  const destination = how === 'for another' ? 'elsewhere.test' : home.name
  const rest = JSON.stringify({ destination, method, origin: peer.name, uri })
  const signed = body === undefined ? rest : `{"content":${body},${rest.slice(1)}`
  const sig = how === 'badly' ? randomBytes(64).toString('base64') : peer.key.sign(signed)
  return `X-Matrix origin="${peer.name}",destination="${destination}",key="${peer.key.keyId}",sig="${sig}"`
}

interface Sent {
  readonly uri: string
  readonly body: string | Buffer | undefined
  readonly signing: Signing
}

function caseOf(endpoint: Endpoint, dice: Dice): Sent {
  const operation = /v\d\/(send_\w+|invite)/.exec(endpoint.path)?.[1]
  const body = endpoint.options.body && bodyOf(endpoint, dice)
  const signing = dice.pick<Signing>([
    'well',
    'well',
    'well',
    'well',
    'well',
    'well',
    'badly',
    'not at all',
    'for another',
  ])
  const request =
    operation !== undefined && dice.below(2) > 0
      ? signedCase(endpoint, operation, dice)
      : { uri: uriOf(endpoint, dice), body }
  return { ...request, signing }
}

function ask({ method }: Endpoint, { uri, body, signing }: Sent): Promise<Answer> {
  const by = authorization(method, uri, body, signing)
  const headers = {
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(by && { authorization: by }),
  }
  return send(pool, home.server.baseUrl, { method, path: uri, headers, body, framing: 'whole' })
}

const errcodeOf = (text: string): unknown => {
  try {
    return JSON.parse(text).errcode
  } catch {
    return undefined
  }
}

/** Of a server that a request names: it is not there, or says nothing that is of use. */
const isOthersFault = (status: number) => status === 502
/** Invitations that cannot be made just now, which only a bind is told. */
const isForLater = ({ path }: Endpoint, status: number) => path.endsWith('onbind') && status === 503

async function faultsOf(endpoint: Endpoint, { signing }: Sent, { status, text: said }: Answer): Promise<string[]> {
  const written = await writes.read()
  if (status >= 200 && status <= 299) {
    return endpoint.options.auth === 'server' && signing !== 'well' ? [`was done for whoever signed ${signing}`] : []
  }
  const errcode = errcodeOf(said)
  const faults: string[] = []
  if (status >= 500 && !isOthersFault(status) && !isForLater(endpoint, status)) faults.push('is our fault')
  if (!(String(errcode) in ERROR_STATUS)) faults.push(`has the errcode ${errcode}`)
  // Keys are kept of whoever was asked for them.
  const stored = written.filter((one) => !one.startsWith('server_key'))
  if (stored.length > 0) faults.push(`wrote ${stored.join()}`)
  const isRead = errcode !== 'M_NOT_JSON' && errcode !== 'M_TOO_LARGE' && errcode !== 'M_UNRECOGNIZED'
  if (endpoint.options.auth === 'server' && signing !== 'well' && isRead && errcode !== 'M_UNAUTHORIZED') {
    if (errcode !== 'M_BAD_JSON' && errcode !== 'M_INVALID_PARAM') faults.push(`signed ${signing}: ${errcode}`)
  }
  return faults
}

/** Nobody holds the token, or the key, that these want; the room has another rule; there are no files. */
const ALWAYS_REFUSED = /openid|media|3pid|exchange|make_knock|GET F.v1.publicRooms/

/** With these nothing is odd. */
const TAME: Dice = { below: () => 1, pick: ([first]) => first!, shuffle: (items) => [...items] }

const LINES = SERVER_API.map((endpoint): [string, Endpoint] => [`${endpoint.method} ${endpoint.path}`, endpoint])

describe('every endpoint for servers, asked badly', () => {
  it.each(LINES)(
    '%s',
    async (line, endpoint) => {
      const dice = diceOf(SEED, line)
      const faults: string[] = []
      let accepted = 0
      await writes.read()
      for (let round = 0; round < CASES; round++) {
        const one = caseOf(endpoint, round === 0 ? TAME : dice)
        const answer = await ask(endpoint, one)
        accepted += Number(answer.status < 300)
        const found = await faultsOf(endpoint, one, answer)
        faults.push(
          ...found.map(
            (fault) =>
              `${fault}: ${one.uri.slice(0, 300)} ${String(one.body).slice(0, 400)}: ${answer.status} ${answer.text.slice(0, 200)}`,
          ),
        )
      }
      expect(faults).toEqual([])
      // What is always refused was never tried in earnest.
      if (!ALWAYS_REFUSED.test(line)) expect(accepted).toBeGreaterThan(0)
    },
    60_000 + CASES * 100,
  )

  it('and the peer is still heard, and its rooms are whole', async () => {
    const uri = '/_matrix/federation/v1/send/after'
    const body = { origin: peer.name, origin_server_ts: 1, pdus: [], edus: [] }
    expect(await peer.ask(there(), 'PUT', uri, { body })).toEqual({ status: 200, body: { pdus: {} } })
    await sendText(home.api, alice.token, plausible.roomId![0] as string, 'after', 'after')
    expect((await handOver(peer, there(), 'leave', await leaveOf())).status).toBe(200)
  })
})

async function leaveOf() {
  const { body } = await proposed(peer, there(), 'leave', plausible.roomId![0] as string)
  return peer.sign(body.room_version, body.event)
}
