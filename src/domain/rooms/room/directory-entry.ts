import {
  avatarOf,
  canonicalAliasOf,
  createContentOf,
  guestAccessOf,
  historyVisibilityOf,
  joinRuleOf,
  roomNameOf,
  topicOf,
} from '../../../core/event/content.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Room } from './room.ts'

/** A room as the public directory shows it, and the text that a search matches. */
export interface DirectoryEntry {
  readonly roomNid: number
  /** The entry is valid at this point of the state log. */
  readonly chain: number
  readonly seq: number
  readonly joined: number
  readonly type: string | undefined
  /** Name, topic and alias in lower case. */
  readonly text: string
  /** `PublishedRoomsChunk` */
  readonly json: JsonObject
}

export async function describeRoom(room: Room): Promise<DirectoryEntry> {
  const { chain, seq } = room.committed
  const joined = room.counts.join
  const of = (type: string) => room.stateEvent(type, '')
  const [name, topic, alias, avatar, rules, visibility, guests, create] = await Promise.all([
    of('m.room.name').then(roomNameOf),
    of('m.room.topic').then(topicOf),
    of('m.room.canonical_alias').then(canonicalAliasOf),
    of('m.room.avatar').then(avatarOf),
    of('m.room.join_rules').then(joinRuleOf),
    of('m.room.history_visibility').then(historyVisibilityOf),
    of('m.room.guest_access').then(guestAccessOf),
    of('m.room.create').then(createContentOf),
  ])
  const known = { name, topic, canonical_alias: alias, avatar_url: avatar, room_type: create.type }
  return {
    roomNid: room.nid,
    chain,
    seq,
    joined,
    type: create.type,
    text: [name, topic, alias].join('\n').toLowerCase(),
    json: {
      room_id: room.id,
      num_joined_members: joined,
      world_readable: visibility === 'world_readable',
      guest_can_join: guests === 'can_join',
      join_rule: rules,
      ...(Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined)) as JsonObject),
    },
  }
}
