import { describe, expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { ROOM_VERSIONS } from '../../../src/core/room-version.ts'
import { type StateMap, setState } from '../../../src/core/state/trie.ts'
import { type Place, SimulatedRoom, type Sketch } from './simulated-room.ts'

// The two graphs by which MSC4297 explains resets: a server that was told the state of the room by another, and told an outdated
// one, sends on top of it. What all branches have seen in their auth chains then gets into conflict again.

const CREATOR = '@creator:one.example' as UserId
const ALICE = '@alice:one.example' as UserId
const BOB = '@bob:two.example' as UserId
const CHARLIE = '@charlie:two.example' as UserId
const DAVE = '@dave:three.example' as UserId

const BY_POWER = ROOM_VERSIONS.filter(({ stateResolution }) => stateResolution !== 'v1')

/** A room that events are appended to one after another. */
class Story {
  readonly room: SimulatedRoom
  #tip: number[] = []

  constructor(room: SimulatedRoom) {
    this.room = room
  }

  async tell(sketch: Sketch): Promise<Place> {
    const place = await this.room.append(this.#tip, sketch)
    if (place === undefined) throw new Error(`${sketch.type} of ${sketch.sender} is refused`)
    this.#tip = [place.nid]
    return place
  }

  member(user: UserId, membership: string): Promise<Place> {
    return this.tell({ type: 'm.room.member', sender: user, stateKey: user, content: { membership } })
  }

  state(sender: UserId, type: string, content: JsonObject): Promise<Place> {
    return this.tell({ type, sender, stateKey: '', content })
  }

  powerLevels(sender: UserId, users: JsonObject): Promise<Place> {
    const { version } = this.room
    const own = version.creatorsAreInfinite ? {} : { [CREATOR]: 100 }
    return this.state(sender, 'm.room.power_levels', { users: { ...own, ...users } })
  }

  /** A state in which one event stands where another, newer one should. */
  outdated(state: StateMap, { nid }: Place): StateMap {
    return setState(state, this.room.at(nid).keyId!, nid)
  }

  async resolvedTo(states: readonly StateMap[], type: string): Promise<number | undefined> {
    return this.room.eventIn(await this.room.resolve(states), type)?.nid
  }
}

async function beginning(version: (typeof ROOM_VERSIONS)[number]): Promise<Story> {
  const story = new Story(new SimulatedRoom(version))
  const create = version.createNamesCreator ? { creator: CREATOR } : {}
  await story.state(CREATOR, 'm.room.create', { ...create, room_version: version.id })
  await story.member(CREATOR, 'join')
  return story
}

describe.each(BY_POWER)('room version $id', (version) => {
  const resets = version.stateResolution === 'v2'

  it(`${resets ? 'loses' : 'keeps'} what was set by someone who has left, when it gets into conflict`, async () => {
    const story = await beginning(version)
    await story.powerLevels(CREATOR, { [ALICE]: 100 })
    await story.state(CREATOR, 'm.room.join_rules', { join_rule: 'public' })
    await story.member(ALICE, 'join')
    const old = await story.state(ALICE, 'm.room.join_rules', { join_rule: 'public' })
    await story.member(BOB, 'join')
    const latest = await story.state(ALICE, 'm.room.join_rules', { join_rule: 'public' })
    await story.member(CHARLIE, 'join')
    const { after } = await story.member(ALICE, 'leave')
    const winner = await story.resolvedTo([after, story.outdated(after, old)], 'm.room.join_rules')
    expect(winner).toBe(resets ? undefined : latest.nid)
  })

  it(`${resets ? 'falls back behind' : 'keeps'} power that was given in several steps, when it gets into conflict`, async () => {
    const story = await beginning(version)
    const first = await story.powerLevels(CREATOR, {})
    await story.state(CREATOR, 'm.room.join_rules', { join_rule: 'public' })
    await story.member(BOB, 'join')
    await story.member(CHARLIE, 'join')
    await story.powerLevels(CREATOR, { [BOB]: 100 })
    const latest = await story.powerLevels(BOB, { [BOB]: 100, [CHARLIE]: 50 })
    const { after } = await story.member(DAVE, 'join')
    const winner = await story.resolvedTo([after, story.outdated(after, first)], 'm.room.power_levels')
    expect(winner).toBe(resets ? first.nid : latest.nid)
  })
})
