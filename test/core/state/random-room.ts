import { serverOf, type UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import type { RoomVersion } from '../../../src/core/room-version.ts'
import { getState, type StateMap, setState } from '../../../src/core/state/trie.ts'
import type { SeededRandom } from './random.ts'
import { type Merge, SimulatedRoom, type Sketch } from './simulated-room.ts'

const USERS = ['creator:one', 'alice:one', 'bob:two', 'carol:two', 'dave:three', 'eve:three'].map(
  (name) => `@${name}.example` as UserId,
)
const CREATOR = USERS[0]!
const NAMED_LEVELS = ['ban', 'kick', 'redact', 'state_default', 'events_default', 'users_default', 'invite']
const LEVELS = [0, 0, 10, 50, 50, 75, 100]
const JOIN_RULES = ['public', 'public', 'invite', 'knock', 'restricted', 'knock_restricted']

const RANDOM_CONFLICTS = 5

export interface RandomRoomOptions {
  /** How many events are tried after the first ones; about half of them are refused. */
  readonly attempts: number
}

/**
 * A room that a seed repeats: users of three servers who change power levels, join rules, memberships and other state on branches
 * that part and meet again. Some of them cite outdated auth events.
 *
 * Power levels always say how much inviting takes, and mostly everything else: see {@link hasOwnDefaults}.
 */
export async function randomRoom(
  version: RoomVersion,
  random: SeededRandom,
  { attempts }: RandomRoomOptions,
): Promise<SimulatedRoom> {
  const room = new SimulatedRoom(version)
  let tip = 0
  for (const sketch of openingOf(version)) {
    tip = (await room.append(tip === 0 ? [] : [tip], sketch))!.nid
  }
  const tips = new Set([tip])
  for (let attempt = 0; attempt < attempts; attempt++) {
    const prev = choosePrev(random, room, tips)
    const before = room.placeOf(prev[0]!).after
    const sketch = withAuth(random, room, { ...sketchEvent(random, room, before), ts: 1000 + random.below(60) })
    const event = await room.append(prev, sketch)
    if (event === undefined) continue
    for (const nid of prev) tips.delete(nid)
    tips.add(event.nid)
  }
  await room.stateBefore([...tips])
  return room
}

function openingOf(version: RoomVersion): Sketch[] {
  const create = version.createNamesCreator ? { creator: CREATOR } : {}
  const by = { sender: CREATOR, stateKey: '', ts: 1000 }
  const users = version.creatorsAreInfinite ? {} : { [CREATOR]: 100 }
  return [
    { ...by, type: 'm.room.create', content: { ...create, room_version: version.id } },
    { ...by, type: 'm.room.member', stateKey: CREATOR, content: { membership: 'join' } },
    { ...by, type: 'm.room.power_levels', content: powerLevels({ ...users, [USERS[1]!]: 50 }) },
    { ...by, type: 'm.room.join_rules', content: { join_rule: 'public' } },
    ...[USERS[1]!, USERS[2]!].map((user) => ({
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

/** One or several tips, now and then an older event. */
function choosePrev(random: SeededRandom, room: SimulatedRoom, tips: ReadonlySet<number>): number[] {
  if (random.chance(0.2)) {
    const first = Math.max(6, room.events.size - 8)
    return [Math.min(room.events.size, first + random.below(9))]
  }
  const shuffled = random.shuffled([...tips])
  return shuffled.slice(0, random.chance(0.35) ? 1 + random.below(4) : 1)
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
  (random) => ({ ...plain(random, 'm.room.third_party_invite'), stateKey: 'token' }),
  aliases,
  oddKey,
  (random) => ({ type: 'm.room.message', sender: random.pick(USERS), content: { body: `${random.below(100)}` } }),
]

function sketchEvent(random: SeededRandom, room: SimulatedRoom, state: StateMap): Sketch {
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
    else users[user] = random.pick(LEVELS)
  } else if (random.chance(0.6)) {
    const name = random.pick(NAMED_LEVELS)
    if (name !== 'invite' && random.chance(0.2)) delete content[name]
    else content[name] = random.pick(LEVELS)
  } else {
    const events = content.events as JsonObject
    events[random.pick(['m.room.topic', 'm.room.name', 'm.room.join_rules', 'm.room.power_levels'])] =
      random.pick(LEVELS)
  }
  return { ...plain(random, 'm.room.power_levels'), content }
}

/** Sometimes an auth event gives way to an older one of the same key, or is left out. */
function withAuth(random: SeededRandom, room: SimulatedRoom, sketch: Sketch): Sketch {
  if (!random.chance(0.2)) return sketch
  const isFewer = random.chance(0.3)
  const auth = (selected: readonly number[]) => {
    const changeable = selected.filter((nid) => !mustStay(room.version, room.at(nid).pdu.type, isFewer))
    if (changeable.length === 0) return selected
    const changed = random.pick(changeable)
    const rest = selected.filter((nid) => nid !== changed)
    const older = [...room.events.values()].filter(
      ({ nid, keyId }) => nid < changed && keyId === room.at(changed).keyId,
    )
    if (isFewer) return rest
    if (older.length === 0) return selected
    return [...rest, random.pick(older).nid]
  }
  return { ...sketch, auth }
}

function mustStay(version: RoomVersion, type: string, isFewer: boolean): boolean {
  return type === 'm.room.create' || (isFewer && type === 'm.room.power_levels' && hasOwnDefaults(version))
}

/** Whether the version has defaults here that are not the published ones, so that nobody else resolves alike without power levels. */
function hasOwnDefaults({ powerLevelDefaults }: RoomVersion): boolean {
  return powerLevelDefaults.invite !== 0 || powerLevelDefaults.stateWithoutEvent !== 50
}

/** Whether other implementations should agree on all of this room's states. */
export function isComparable(room: SimulatedRoom): boolean {
  if (!hasOwnDefaults(room.version)) return true
  const states = [...room.merges.map(({ resolved }) => resolved), ...room.places.map(({ after }) => after)]
  return states.every((state) => state.size < 4 || room.eventIn(state, 'm.room.power_levels') !== undefined)
}

/**
 * What servers may take for the state of a room: that of where branches met, that after events anywhere, and that with an older
 * event in the place of one, as a server has it which was told the state by another that was behind.
 */
export async function conflictsIn(room: SimulatedRoom, random: SeededRandom): Promise<Merge[]> {
  const conflicts = [...room.merges]
  for (let count = 0; count < RANDOM_CONFLICTS; count++) {
    const states = Array.from({ length: 2 + random.below(3) }, () => {
      const { after } = room.placeOf(1 + random.below(room.events.size))
      return random.chance(0.3) ? outdated(room, random, after) : after
    })
    conflicts.push({ states, resolved: await room.resolve(states) })
  }
  return conflicts.filter(({ states }) => new Set(states).size > 1)
}

function outdated(room: SimulatedRoom, random: SeededRandom, state: StateMap): StateMap {
  const events = [...room.events.values()].filter(({ keyId }) => keyId !== undefined)
  const replaceable = events.filter(({ keyId, nid }) => nid < getState(state, keyId!))
  if (replaceable.length === 0) return state
  const { keyId, nid } = random.pick(replaceable)
  return setState(state, keyId!, nid)
}
