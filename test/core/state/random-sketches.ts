import { serverOf, type UserId } from '../../../src/core/ids.ts'
import type { JsonObject, JsonValue } from '../../../src/core/json.ts'
import type { RoomVersion } from '../../../src/core/room-version.ts'
import { signJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import type { StateMap } from '../../../src/core/state/trie.ts'
import type { SeededRandom } from './random.ts'
import type { SimulatedRoom, Sketch } from './simulated-room.ts'

const USERS = ['creator:one', 'alice:one', 'bob:two', 'carol:two', 'dave:three', 'eve:three'].map(
  (name) => `@${name}.example` as UserId,
)
const [CREATOR, ALICE, BOB] = USERS as [UserId, UserId, UserId]
const IDENTITY_KEY = signingKeyFromSeed('ed25519:0', new Uint8Array(32).fill(1))
const TOKEN = 'token'
const NAMED_LEVELS = ['ban', 'kick', 'redact', 'state_default', 'events_default', 'users_default', 'invite']
const LEVELS = [0, 0, 10, 50, 50, 75, 100]
const JOIN_RULES = ['public', 'public', 'invite', 'knock', 'restricted', 'knock_restricted']

/** The first events of a room, after which others may join. */
export function openingOf(version: RoomVersion, random: SeededRandom): Sketch[] {
  const isShared = version.creatorsAreInfinite && random.chance(0.3)
  const create = version.createNamesCreator ? { creator: CREATOR } : isShared ? { additional_creators: [ALICE] } : {}
  const by = { sender: CREATOR, stateKey: '', ts: 1000 }
  const creator = version.creatorsAreInfinite ? {} : { [CREATOR]: 100 }
  const users = isShared ? creator : { ...creator, [ALICE]: 50 }
  return [
    { ...by, type: 'm.room.create', content: { ...create, room_version: version.id } },
    { ...by, type: 'm.room.member', stateKey: CREATOR, content: { membership: 'join' } },
    { ...by, type: 'm.room.power_levels', content: powerLevels(users) },
    { ...by, type: 'm.room.join_rules', content: { join_rule: 'public' } },
    ...[ALICE, BOB].map((user) => ({
      ...by,
      type: 'm.room.member',
      sender: user,
      stateKey: user,
      content: { membership: 'join' },
    })),
  ]
}

function powerLevels(users: JsonObject): JsonObject {
  return {
    users,
    events: { 'm.room.topic': 10, 'm.room.power_levels': 75 },
    notifications: {},
    ...{ ban: 50, kick: 50, invite: 0, redact: 50, state_default: 50, events_default: 0, users_default: 0 },
  }
}

type Maker = (random: SeededRandom, room: SimulatedRoom, state: StateMap) => Omit<Sketch, 'ts'>

const MAKERS: readonly Maker[] = [
  (random) => member(random, 'join'),
  (random) => member(random, 'join'),
  (random) => member(random, 'leave'),
  (random) => membershipOfOther(random, 'leave'),
  (random) => membershipOfOther(random, 'ban'),
  (random) => membershipOfOther(random, 'ban'),
  (random) => membershipOfOther(random, 'invite'),
  (random) => member(random, 'knock'),
  restrictedJoin,
  joinRules,
  joinRules,
  changedPowerLevels,
  changedPowerLevels,
  changedPowerLevels,
  (random) => plain(random, 'm.room.topic'),
  (random) => plain(random, 'm.room.topic'),
  (random) => plain(random, 'm.room.name'),
  (random) => ({ ...plain(random, 'org.example.setting'), stateKey: random.pick(['a', 'b', ...USERS]) }),
  thirdPartyInvite,
  thirdPartyInvite,
  aliases,
  oddKey,
  (random) => ({ type: 'm.room.message', sender: random.pick(USERS), content: { body: `${random.below(100)}` } }),
]

/** What some user might do next, allowed or not. */
export function sketchEvent(random: SeededRandom, room: SimulatedRoom, state: StateMap): Sketch {
  return random.pick(MAKERS)(random, room, state)
}

function member(random: SeededRandom, membership: string): Sketch {
  const sender = random.pick(USERS)
  const content = { membership, displayname: `name ${random.below(10)}` }
  return { type: 'm.room.member', sender, stateKey: sender, content }
}

/** Mostly by those who are likely to have the power. */
function membershipOfOther(random: SeededRandom, membership: string): Sketch {
  const sender = random.chance(0.6) ? random.pick(USERS.slice(0, 3)) : random.pick(USERS)
  return { ...member(random, membership), sender }
}

function restrictedJoin(random: SeededRandom): Sketch {
  const join = member(random, 'join')
  const neighbours = USERS.filter((user) => serverOf(user) === serverOf(join.sender))
  return { ...join, content: { ...join.content, join_authorised_via_users_server: random.pick(neighbours) } }
}

function joinRules(random: SeededRandom): Sketch {
  const rule = random.pick(JOIN_RULES)
  return { ...plain(random, 'm.room.join_rules'), content: { join_rule: rule, allow: [] } }
}

function plain(random: SeededRandom, type: string): Sketch {
  const sender = random.chance(0.6) ? random.pick(USERS.slice(0, 3)) : random.pick(USERS)
  return { type, sender, stateKey: '', content: { value: random.below(100) } }
}

function aliases(random: SeededRandom): Sketch {
  const sender = random.pick(USERS)
  return { type: 'm.room.aliases', sender, stateKey: serverOf(sender), content: { aliases: [] } }
}

/** A type that has a meaning under the empty state key only. */
function oddKey(random: SeededRandom): Sketch {
  return { ...plain(random, 'm.room.join_rules'), stateKey: 'odd', content: { join_rule: 'public' } }
}

function changedPowerLevels(random: SeededRandom, room: SimulatedRoom, state: StateMap): Sketch {
  const content = structuredClone(room.eventIn(state, 'm.room.power_levels')?.pdu.content ?? powerLevels({}))
  if (random.chance(0.7)) {
    const users = content.users as JsonObject
    const user = random.pick(room.version.creatorsAreInfinite ? USERS.slice(1) : USERS)
    if (random.chance(0.15)) delete users[user]
    else users[user] = randomLevel(random, room)
  } else if (random.chance(0.6)) {
    const name = random.pick(NAMED_LEVELS)
    if (name !== 'invite' && random.chance(0.2)) delete content[name]
    else content[name] = randomLevel(random, room)
  } else {
    const events = content.events as JsonObject
    events[random.pick(['m.room.topic', 'm.room.name', 'm.room.join_rules', 'm.room.power_levels'])] = randomLevel(
      random,
      room,
    )
  }
  return { ...plain(random, 'm.room.power_levels'), content }
}

/** Old versions of rooms take levels written as text. */
function randomLevel(random: SeededRandom, { version }: SimulatedRoom): JsonValue {
  const level = random.pick(LEVELS)
  return version.powerLevelNumbers !== 'integers' && random.chance(0.1) ? `${level}` : level
}

/** The promise to invite whoever bears a token, or an invite that keeps it. */
function thirdPartyInvite(random: SeededRandom, room: SimulatedRoom, state: StateMap): Sketch {
  const promise = room.eventIn(state, 'm.room.third_party_invite', TOKEN)?.pdu
  if (promise === undefined || random.chance(0.3)) {
    const content = { public_key: IDENTITY_KEY.publicKey, display_name: `${random.below(10)}` }
    return { ...plain(random, 'm.room.third_party_invite'), stateKey: TOKEN, content }
  }
  const target = random.pick(USERS)
  const signed = signJson({ mxid: target, token: TOKEN }, 'identity.example', IDENTITY_KEY)
  const content = { membership: 'invite', third_party_invite: { display_name: 'x', signed } }
  return { type: 'm.room.member', sender: promise.sender, stateKey: target, content }
}
