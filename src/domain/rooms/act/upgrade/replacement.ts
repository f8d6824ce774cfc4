import { creatorsOf, joinRuleOf } from '../../../../core/event/content.ts'
import type { JsonObject } from '../../../../core/json.ts'
import { readJson } from '../../../../core/json.ts'
import type { RoomVersion } from '../../../../core/room-version.ts'
import { forEachState, type StateMap } from '../../../../core/state/trie.ts'
import type { Room } from '../../room/room.ts'
import type { RoomEvent } from '../../room/room-event.ts'
import type { Draft } from '../../write/draft.ts'
import { powerLevels } from '../create-presets.ts'
import { levelsAfterUpgrade } from './levels.ts'

/** The state that a new room takes over from the room it replaces (client-server API, "Room Upgrades"), beside power levels and members. */
const COPIED = [
  'm.room.server_acl',
  'm.room.encryption',
  'm.room.name',
  'm.room.avatar',
  'm.room.topic',
  'm.room.guest_access',
  'm.room.history_visibility',
  'm.room.join_rules',
] as const

/** What a new room begins with, from the state of the old one. */
export interface Replaced {
  readonly room: Room
  /** The state right before the tombstone. */
  readonly state: StateMap
  /** Power levels that only closed the old room, by an earlier upgrade of it. */
  readonly closings: ReadonlySet<number>
}

type By = Pick<Draft, 'sender' | 'senderNid'>

/** The state events to copy. Content that the new version does not allow is left out. */
export async function copiedState({ room, state }: Replaced, by: By, to: RoomVersion): Promise<Draft[]> {
  const drafts: Draft[] = []
  for (const type of COPIED) {
    const event = await room.stateEvent(type, '', state)
    if (!event || !isCanonical(event)) continue
    const isClosed = type === 'm.room.join_rules' && !to.joinRules.has(joinRuleOf(event))
    drafts.push({ type, stateKey: '', content: isClosed ? { join_rule: 'invite' } : event.content, ...by })
  }
  return drafts
}

/** Whether every room version allows the content. Stored JSON of old versions may hold floats and integers of any size. */
const isCanonical = ({ json }: RoomEvent): boolean => readJson(json).offence === undefined

/** The power levels of the new room. */
export async function copiedLevels(
  { room, state, closings }: Replaced,
  by: By,
  { to, creators }: { readonly to: RoomVersion; readonly creators: readonly string[] },
): Promise<Draft> {
  const create = await room.stateEvent('m.room.create', '', state)
  const current = await room.stateEvent('m.room.power_levels', '', state)
  const event = current && closings.has(current.nid) ? await replacedBy(room, current) : current
  const content = event
    ? levelsAfterUpgrade(event.authPdu.content, {
        from: room.version,
        to,
        creators: create ? creatorsOf(room.version, create.authPdu) : [],
        newCreators: creators,
        others: isCanonical(event) ? event.content : {},
      })
    : powerLevels(to, by.sender, [])
  return { type: 'm.room.power_levels', stateKey: '', content, ...by }
}

async function replacedBy(room: Room, { replacesNid }: RoomEvent): Promise<RoomEvent | undefined> {
  return replacesNid === undefined ? undefined : (await room.events([replacesNid])).get(replacesNid)
}

/** The numbers of the events that list the children of a space, in the order in which their keys came up. */
export function childNids({ room, state }: Replaced): number[] {
  const nids: number[] = []
  forEachState(state, (keyId, nid) => {
    if (room.keys.nameOf(keyId).type === 'm.space.child') nids.push(nid)
  })
  return nids.sort((a, b) => a - b)
}

/** What of these events the new room repeats: children that are still listed, and bans. */
export function repeated(events: Iterable<RoomEvent>, by: By): Draft[] {
  return [...events].filter(isCanonical).flatMap((event): Draft[] => {
    const stateKey = event.pdu.state_key
    if (stateKey === undefined) return []
    const content = repeatedContent(event)
    return content === undefined ? [] : [{ type: event.type, stateKey, content, ...by }]
  })
}

function repeatedContent({ type, content }: RoomEvent): JsonObject | undefined {
  if (type === 'm.space.child') return Array.isArray(content.via) ? content : undefined
  if (content.membership !== 'ban') return undefined
  return { membership: 'ban', ...(typeof content.reason === 'string' ? { reason: content.reason } : {}) }
}
