import {
  allowedRoomsOf,
  createContentOf,
  encryptionAlgorithmOf,
  historyVisibilityOf,
  joinRuleOf,
} from '../../../../core/event/content.ts'
import { compareSpaceChildren, readSpaceChild, type SpaceChild } from '../../../../core/event/space-child.ts'
import type { RoomId } from '../../../../core/ids.ts'
import type { JsonObject } from '../../../../core/json.ts'
import { getState } from '../../../../core/state/trie.ts'
import { MAX_SPACE_CHILDREN, MAX_SPACE_CHILDREN_CHARS, MAX_SPACE_CHILDREN_READ } from '../../../limits/spaces.ts'
import { describeRoom } from '../../room/directory-entry.ts'
import type { Room } from '../../room/room.ts'

/** Who may join a room, or see it from outside. */
export interface Openness {
  /** Whether anybody may read it, join or knock. */
  readonly isOpen: boolean
  /** Rooms whose members may join; empty under any other join rule. */
  readonly allowed: readonly RoomId[]
}

/** The summary of a room, for users who may join it (client-server API, `RoomSummary`). */
export async function summaryOf(room: Room): Promise<JsonObject> {
  const [{ json }, { allowed }, encryption] = await Promise.all([
    describeRoom(room),
    opennessOf(room),
    room.stateEvent('m.room.encryption', '').then(encryptionAlgorithmOf),
  ])
  return {
    ...json,
    ...(allowed.length > 0 && { allowed_room_ids: [...allowed] }),
    ...(encryption !== undefined && { encryption }),
    room_version: room.version.id,
  }
}

const OPEN_RULES: ReadonlySet<string> = new Set(['public', 'knock', 'knock_restricted'])

/** A join rule that the room's version does not know lets nobody in. */
export async function opennessOf(room: Room): Promise<Openness> {
  const [rules, visibility] = await Promise.all([
    room.stateEvent('m.room.join_rules', ''),
    room.stateEvent('m.room.history_visibility', ''),
  ])
  const rule = joinRuleOf(rules)
  const isKnown = (room.version.joinRules as ReadonlySet<string>).has(rule)
  const isOpen = (isKnown && OPEN_RULES.has(rule)) || historyVisibilityOf(visibility) === 'world_readable'
  const isRestricted = isKnown && (rule === 'restricted' || rule === 'knock_restricted')
  return { isOpen, allowed: isRestricted ? allowedRoomsOf(rules) : [] }
}

/** The children of a space, in their order and within limits; none if the room is not a space. */
export async function childrenOf(room: Room, suggestedOnly: boolean): Promise<SpaceChild[]> {
  if (createContentOf(await room.stateEvent('m.room.create', '')).type !== 'm.space') return []
  const { state } = room.committed
  const nids = [...room.keys.ofType('m.space.child')].map(([, keyId]) => getState(state, keyId))
  const events = await room.events(nids.filter((nid) => nid !== 0).slice(0, MAX_SPACE_CHILDREN_READ))
  const children = [...events.values()].flatMap((event) => readSpaceChild(event.pdu as unknown as JsonObject) ?? [])
  return firstOf(children.filter(({ isSuggested }) => isSuggested || !suggestedOnly).sort(compareSpaceChildren))
}

/** As many of these children as an answer has room for. */
function firstOf(children: readonly SpaceChild[]): SpaceChild[] {
  const first: SpaceChild[] = []
  let chars = 0
  for (const child of children.slice(0, MAX_SPACE_CHILDREN)) {
    chars += JSON.stringify(child.shown).length
    if (chars > MAX_SPACE_CHILDREN_CHARS) break
    first.push(child)
  }
  return first
}
