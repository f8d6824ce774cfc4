import { type EventId, isEventId, isRoomAlias, isRoomId, type RoomAlias, type RoomId, type UserId } from '../ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import { type RoomVersion, UNNAMED_ROOM_VERSION } from '../room-version.ts'

// Tolerant readers of event content: it may have any shape, and values of a wrong shape count as absent. Nothing here throws.

/** A state event, or undefined if the room has no such state. */
export type MaybeEvent = { readonly content: JsonObject } | undefined

export type Membership = 'invite' | 'join' | 'knock' | 'leave' | 'ban'
export type HistoryVisibility = 'invited' | 'joined' | 'shared' | 'world_readable'

const MEMBERSHIPS: ReadonlySet<JsonValue | undefined> = new Set<Membership>(['invite', 'join', 'knock', 'leave', 'ban'])
const VISIBILITIES: ReadonlySet<JsonValue | undefined> = new Set(['invited', 'joined', 'shared', 'world_readable'])

/** The membership in the content of a member event, or undefined if it is not valid. */
export function statedMembership(content: JsonObject): Membership | undefined {
  return MEMBERSHIPS.has(content.membership) ? (content.membership as Membership) : undefined
}

/** A user's membership by their `m.room.member` event; `leave` without an event. */
export function membershipOf(member: MaybeEvent): Membership {
  return (member && statedMembership(member.content)) ?? 'leave'
}

/** Whether an event, whose shape nobody has checked yet, says that its sender leaves. */
export function isOwnLeave(event: {
  readonly type?: JsonValue
  readonly sender?: JsonValue
  readonly state_key?: JsonValue
  readonly content?: JsonValue
}): boolean {
  const { type, sender, state_key: target, content } = event
  return type === 'm.room.member' && sender === target && isObject(content) && statedMembership(content) === 'leave'
}

/** The display name in a member event or a profile; undefined if absent or empty. */
export function displayNameOf(member: MaybeEvent): string | undefined {
  return nonEmpty(member?.content.displayname)
}

export function avatarUrlOf(member: MaybeEvent): string | undefined {
  return nonEmpty(member?.content.avatar_url)
}

/** The join rule, known or not; `invite` if there is none, and empty if it is not text. */
export function joinRuleOf(joinRules: MaybeEvent): string {
  const rule = joinRules?.content.join_rule ?? 'invite'
  return typeof rule === 'string' ? rule : ''
}

/** The rooms whose members may join (`allow` of restricted join rules). */
export function allowedRoomsOf(joinRules: MaybeEvent): RoomId[] {
  return listOf(joinRules?.content.allow)
    .filter(isObject)
    .filter((condition) => condition.type === 'm.room_membership')
    .map((condition) => condition.room_id)
    .filter(isRoomId)
}

/** The history visibility; `shared` if there is none or it is unknown. */
export function historyVisibilityOf(visibility: MaybeEvent): HistoryVisibility {
  const stated = visibility?.content.history_visibility
  return VISIBILITIES.has(stated) ? (stated as HistoryVisibility) : 'shared'
}

export function guestAccessOf(guestAccess: MaybeEvent): 'can_join' | 'forbidden' {
  return guestAccess?.content.guest_access === 'can_join' ? 'can_join' : 'forbidden'
}

export function canonicalAliasOf(canonicalAlias: MaybeEvent): RoomAlias | undefined {
  const alias = canonicalAlias?.content.alias
  return isRoomAlias(alias) ? alias : undefined
}

export function altAliasesOf(canonicalAlias: MaybeEvent): RoomAlias[] {
  return listOf(canonicalAlias?.content.alt_aliases).filter(isRoomAlias)
}

export function roomNameOf(name: MaybeEvent): string | undefined {
  return nonEmpty(name?.content.name)
}

/** The topic as plain text: the first such part of `m.topic`, else `topic`. Without `topic` there is none (`m.room.topic`). */
export function topicOf(topic: MaybeEvent): string | undefined {
  const text = nonEmpty(topic?.content.topic)
  const block = topic?.content['m.topic']
  if (text === undefined || !isObject(block)) return text
  const plain = listOf(block['m.text']).find(
    (part) => isObject(part) && (part.mimetype ?? 'text/plain') === 'text/plain',
  )
  return (isObject(plain) ? nonEmpty(plain.body) : undefined) ?? text
}

/** The `mxc://` URI of the room's picture. */
export function avatarOf(avatar: MaybeEvent): string | undefined {
  return nonEmpty(avatar?.content.url)
}

export function encryptionAlgorithmOf(encryption: MaybeEvent): string | undefined {
  return nonEmpty(encryption?.content.algorithm)
}

/** The room that replaces this one, from `m.room.tombstone`. */
export function replacementRoomOf(tombstone: MaybeEvent): RoomId | undefined {
  const room = tombstone?.content.replacement_room
  return isRoomId(room) ? room : undefined
}

/** The target of a redaction, from the place that the room version defines. */
export function redactsOf(
  version: RoomVersion,
  redaction: { redacts?: JsonValue; content: JsonObject },
): EventId | undefined {
  const target = version.redactsIsInContent ? redaction.content.redacts : redaction.redacts
  return isEventId(target) ? target : undefined
}

/** The content of `m.room.create`. */
export interface CreateContent {
  /** The id of the room's version, which this server may not know. */
  readonly roomVersionId: string
  readonly federates: boolean
  /** Absent for an ordinary room; `m.space` for a space. */
  readonly type: string | undefined
  readonly predecessor: { readonly roomId: RoomId; readonly eventId: EventId | undefined } | undefined
}

export function createContentOf(create: MaybeEvent): CreateContent {
  const content = create?.content ?? {}
  const predecessor = isObject(content.predecessor) ? content.predecessor : {}
  const { room_id: roomId, event_id: eventId } = predecessor
  return {
    roomVersionId: nonEmpty(content.room_version) ?? UNNAMED_ROOM_VERSION.id,
    federates: content['m.federate'] !== false,
    type: nonEmpty(content.type),
    predecessor: isRoomId(roomId) ? { roomId, eventId: isEventId(eventId) ? eventId : undefined } : undefined,
  }
}

/** The users who made the room: one, or from room version 12 on also the `additional_creators`. */
export function creatorsOf(version: RoomVersion, create: { sender: UserId; content: JsonObject }): readonly string[] {
  if (version.createNamesCreator) return typeof create.content.creator === 'string' ? [create.content.creator] : []
  if (!version.creatorsAreInfinite) return [create.sender]
  return [create.sender, ...listOf(create.content.additional_creators).filter((user) => typeof user === 'string')]
}

/** The user who authorised a restricted join. */
export function joinAuthoriserOf(content: JsonObject): string | undefined {
  return nonEmpty(content.join_authorised_via_users_server)
}

/** The `signed` part of a third-party invite, from the content of the invited user's member event. */
export function signedInviteOf(content: JsonObject): JsonObject | undefined {
  const invite = content.third_party_invite
  return isObject(invite) && isObject(invite.signed) ? invite.signed : undefined
}

function nonEmpty(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : []
}
