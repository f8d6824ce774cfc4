import type { RoomVersion } from '../../../src/core/room-version.ts'
import { getState, type StateMap, setState } from '../../../src/core/state/trie.ts'
import type { SeededRandom } from './random.ts'
import { openingOf, sketchEvent } from './random-sketches.ts'
import { type Merge, SimulatedRoom, type Sketch } from './simulated-room.ts'

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
  for (const sketch of openingOf(version, random)) {
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

/** One or several tips, now and then an older event. */
function choosePrev(random: SeededRandom, room: SimulatedRoom, tips: ReadonlySet<number>): number[] {
  if (random.chance(0.2)) {
    const first = Math.max(6, room.events.size - 8)
    return [Math.min(room.events.size, first + random.below(9))]
  }
  const shuffled = random.shuffled([...tips])
  return shuffled.slice(0, random.chance(0.35) ? 1 + random.below(4) : 1)
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
 * event or none in the place of one, as a server has it which was told the state by another that was behind.
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

/** No state lacks a create event that every event implies; without power levels, defaults decide that differ here on purpose. */
function isNeeded(version: RoomVersion, type: string): boolean {
  if (type === 'm.room.create') return version.roomIdIsCreateHash
  return type === 'm.room.power_levels' && hasOwnDefaults(version)
}

function outdated(room: SimulatedRoom, random: SeededRandom, state: StateMap): StateMap {
  const events = [...room.events.values()].filter(({ keyId }) => keyId !== undefined)
  if (random.chance(0.2)) {
    const { keyId, pdu } = random.pick(events)
    return isNeeded(room.version, pdu.type) ? state : setState(state, keyId!, 0)
  }
  const replaceable = events.filter(({ keyId, nid }) => nid < getState(state, keyId!))
  if (replaceable.length === 0) return state
  const { keyId, nid } = random.pick(replaceable)
  return setState(state, keyId!, nid)
}
