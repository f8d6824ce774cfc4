import type { Logger } from 'pino'
import { readPowerLevels } from '../../../core/auth/power-levels.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { buildEvent } from '../../../core/event/build.ts'
import { isUserId, type RoomAlias, type RoomId, serverOf, type UserId } from '../../../core/ids.ts'
import { isObject, type JsonObject } from '../../../core/json.ts'
import { type RoomVersion, roomVersion } from '../../../core/room-version.ts'
import { roomIdOfCreate } from '../../../core/signing/event-hash.ts'
import type { Database } from '../../../store/db/db.ts'
import { nextRoomNid } from '../../../store/rooms/rooms.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { InviteRemotely } from '../remote/remote-invites.ts'
import { emptyRoom, type Room } from '../room/room.ts'
import type { Appender, AppendParts } from '../write/append.ts'
import type { Draft } from '../write/draft.ts'
import { checkOffence, checkStateContent } from './actions.ts'
import { powerLevels, presetOf } from './create-presets.ts'
import type { MembershipParts } from './membership.ts'
import { defaultState, type RoomDefaults } from './room-defaults.ts'
import type { RoomRequest, Rooms } from './rooms.ts'

/** The aliases of this server, as far as creating a room needs them. */
export interface RoomNames {
  /** The full alias of a localpart. @throws ProtocolError when it is malformed or taken */
  reserve(by: Requester, localpart: string, roomNid: number): Promise<RoomAlias>
  release(alias: RoomAlias): Promise<void>
  publish(roomNid: number): Promise<void>
}

export interface CreateParts
  extends Pick<AppendParts, 'serverName' | 'signingKey' | 'clock' | 'random' | 'events'>,
    Pick<MembershipParts, 'profileOf' | 'isKnownUser' | 'invitePermission'> {
  readonly db: Database
  readonly appender: Appender
  readonly names: RoomNames
  readonly inviteRemotely: InviteRemotely
  readonly log: Logger
  readonly defaultVersion: string
  readonly defaults: RoomDefaults
}

/** Limit for invitations in one `createRoom`. */
const MAX_INVITES = 500
const MAX_INITIAL_STATE = 200

/** How often a room is created again because another one got the same id. */
const MAX_ATTEMPTS = 8

export function createRoomMaker(parts: CreateParts): Rooms['create'] {
  let newestCreation = 0

  /**
   * The time of a create event, different for each. Where a room's id is the hash of this event, two rooms that one user creates in the
   * same millisecond would otherwise be the same room.
   */
  function creationTime(): number {
    newestCreation = Math.max(parts.clock.now(), newestCreation + 1)
    return newestCreation
  }

  async function makeRoom(
    nid: number,
    version: RoomVersion,
    create: () => Draft,
    later: readonly Draft[],
  ): Promise<Room> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const first = create()
      const room = newRoom(parts, nid, version, first)
      const appended = await parts.appender.appendTo(room, [first, ...later]).catch(becauseOfRules)
      if (appended !== 'moved') return room
    }
    throw new ProtocolError('M_UNKNOWN', 'The room could not be made just now. Send the request again.', {
      status: 503,
    })
  }

  /** The invited users' servers have to sign, so the room must exist first. Its creator gets the answer whatever these servers say. */
  async function inviteElsewhere(by: Requester, roomId: RoomId, request: RoomRequest, invited: readonly UserId[]) {
    const content = { membership: 'invite', ...(request.is_direct === true && { is_direct: true }) }
    for (const userId of invited.filter((each) => serverOf(each) !== parts.serverName)) {
      await parts.inviteRemotely(by, roomId, userId, content).catch((error: Error) => {
        parts.log.info(
          { roomId, userId, reason: error.message },
          'a user of another server was not invited to a new room',
        )
      })
    }
  }

  return async (by, request, offence) => {
    const version = chosenVersion(request.room_version ?? parts.defaultVersion)
    checkOffence(version, offence)
    const invited = await checkInvited(parts, by, request.invite ?? [])
    const nid = await nextRoomNid(parts.db)
    const alias =
      request.room_alias_name === undefined ? undefined : await parts.names.reserve(by, request.room_alias_name, nid)
    try {
      const later = await firstEvents(parts, by, version, request, invited, alias)
      for (const { type, content } of later) checkStateContent(type, content)
      mustBeRunnable(version, by, later)
      const room = await makeRoom(nid, version, () => createDraft(by, version, request, invited, creationTime()), later)
      if (request.visibility === 'public') await parts.names.publish(nid)
      await inviteElsewhere(by, room.id, request, invited)
      return { roomId: room.id, alias }
    } catch (error) {
      if (alias !== undefined) await parts.names.release(alias)
      throw error
    }
  }
}

/**
 * Turns a refusal of the room's first events into an error about the request: its creator lacks the power for them, or no rule allows them.
 */
function becauseOfRules(error: unknown): never {
  const isRefused = error instanceof ProtocolError && error.errcode === 'M_FORBIDDEN'
  throw isRefused
    ? new ProtocolError('M_INVALID_ROOM_STATE', `A room that begins so cannot be made: ${error.message}`)
    : error
}

/** Refuses power levels that neither the creator nor any named user could ever change. */
function mustBeRunnable(version: RoomVersion, by: Requester, drafts: readonly Draft[]): void {
  if (version.creatorsAreInfinite) return
  const content = drafts.find(({ type, stateKey }) => type === 'm.room.power_levels' && stateKey === '')?.content ?? {}
  const levels = readPowerLevels(version, content, undefined)
  const named = isObject(content.users) ? Object.keys(content.users) : []
  const needed = levels.toSend('m.room.power_levels', true)
  if ([by.userId, ...named].some((userId) => levels.levelOf(userId) >= needed)) return
  const message =
    'With these power levels nobody could ever run the room: give its creator the level that `m.room.power_levels` takes.'
  throw new ProtocolError('M_INVALID_ROOM_STATE', message)
}

function chosenVersion(id: string): RoomVersion {
  const version = roomVersion(id)
  if (!version) throw new ProtocolError('M_UNSUPPORTED_ROOM_VERSION', `This server makes no rooms of version ${id}.`)
  return version
}

async function checkInvited(parts: CreateParts, by: Requester, invite: readonly string[]): Promise<UserId[]> {
  if (invite.length > MAX_INVITES) {
    throw new ProtocolError('M_INVALID_PARAM', `At most ${MAX_INVITES} users can be invited while a room is made.`)
  }
  const invited = [...new Set(invite)]
  for (const userId of invited) {
    if (!isUserId(userId)) throw new ProtocolError('M_INVALID_PARAM', 'An entry of `invite` is not a user id.')
    if (!(await parts.isKnownUser(userId)))
      throw new ProtocolError('M_NOT_FOUND', `There is no user ${userId} on this server.`)
    await parts.invitePermission.require(by.userId, userId)
  }
  return invited as UserId[]
}

function newRoom(parts: CreateParts, nid: number, version: RoomVersion, create: Draft): Room {
  return emptyRoom({ nid, id: roomIdFor(parts, version, create), version, events: parts.events })
}

/** A random id, or the hash of the create event. For the hash, the event is built here, and again identically when it is stored. */
export function roomIdFor(
  parts: Pick<CreateParts, 'serverName' | 'signingKey' | 'random'>,
  version: RoomVersion,
  create: Draft,
): RoomId {
  if (!version.roomIdIsCreateHash)
    return `!${parts.random.bytes(18).toString('base64url')}:${parts.serverName}` as RoomId
  const { eventId } = buildEvent(
    version,
    {
      type: create.type,
      state_key: '',
      content: create.content,
      sender: create.sender,
      origin_server_ts: create.ts!,
      depth: 1,
      prev_events: [],
      auth_events: [],
    },
    parts.serverName,
    parts.signingKey,
  )
  return roomIdOfCreate(eventId)
}

function createDraft(
  by: Requester,
  version: RoomVersion,
  request: RoomRequest,
  invited: readonly UserId[],
  ts: number,
): Draft {
  const { creator: _, room_version: __, additional_creators: named, ...wanted } = request.creation_content ?? {}
  const creators = named ?? []
  if (!Array.isArray(creators) || !creators.every((userId) => isUserId(userId))) {
    throw new ProtocolError('M_BAD_JSON', '`additional_creators` has to be a list of user ids.')
  }
  const content: JsonObject = { ...wanted, room_version: version.id, ...(named && { additional_creators: named }) }
  if (version.createNamesCreator) content.creator = by.userId
  if (version.creatorsAreInfinite && presetOf(request).trustsInvited && invited.length > 0) {
    content.additional_creators = [...new Set([...creators, ...invited])]
  }
  return state(by, 'm.room.create', content, ts)
}

function state(by: Requester, type: string, content: JsonObject, ts?: number, stateKey = ''): Draft {
  return {
    type,
    stateKey,
    content,
    sender: by.userId,
    senderNid: by.userNid,
    ...(ts === undefined ? {} : { ts }),
  }
}

/** All events after the create event, in the order of the specification (client-server API, `POST createRoom`). */
async function firstEvents(
  parts: CreateParts,
  by: Requester,
  version: RoomVersion,
  request: RoomRequest,
  invited: readonly UserId[],
  alias: RoomAlias | undefined,
): Promise<Draft[]> {
  const preset = presetOf(request)
  const initial = initialState(by, request)
  const given = new Set(initial.map(({ type, stateKey }) => `${type}\0${stateKey}`))
  const profile = await parts.profileOf(by.userId)
  const levels = powerLevels(
    version,
    by.userId,
    preset.trustsInvited ? invited : [],
    request.power_level_content_override,
  )
  const fromPreset = [
    state(by, 'm.room.join_rules', { join_rule: preset.joinRule }),
    state(by, 'm.room.history_visibility', { history_visibility: preset.historyVisibility }),
    ...(preset.guestAccess ? [state(by, 'm.room.guest_access', { guest_access: 'can_join' })] : []),
    ...defaultState(parts.defaults, by, preset.joinRule).map(({ type, content }) => state(by, type, content)),
  ].filter(({ type, stateKey }) => !given.has(`${type}\0${stateKey}`))
  const drafts = [
    state(by, 'm.room.member', { membership: 'join', ...profile }, undefined, by.userId),
    ...(given.has('m.room.power_levels\0') ? [] : [state(by, 'm.room.power_levels', levels)]),
    ...(alias === undefined ? [] : [state(by, 'm.room.canonical_alias', { alias })]),
    ...fromPreset,
    ...initial,
  ]
  if (request.name !== undefined) drafts.push(state(by, 'm.room.name', { name: request.name }))
  if (request.topic !== undefined) drafts.push(state(by, 'm.room.topic', topicContent(request.topic)))
  const directly = request.is_direct === true ? { is_direct: true } : {}
  for (const userId of invited.filter((each) => serverOf(each) === parts.serverName)) {
    const content = { membership: 'invite', ...(await parts.profileOf(userId)), ...directly }
    drafts.push(state(by, 'm.room.member', content, undefined, userId))
  }
  return drafts
}

/** A topic of plain text, also in the form of release 1.15. */
function topicContent(topic: string): JsonObject {
  return { topic, 'm.topic': { 'm.text': [{ body: topic }] } }
}

function initialState(by: Requester, request: RoomRequest): Draft[] {
  const initial = request.initial_state ?? []
  if (initial.length > MAX_INITIAL_STATE) {
    throw new ProtocolError(
      'M_INVALID_PARAM',
      `At most ${MAX_INITIAL_STATE} state events can be given while a room is made.`,
    )
  }
  return initial.map(({ type, state_key = '', content }) => {
    if (type === 'm.room.create' || type === 'm.room.member') {
      throw new ProtocolError('M_INVALID_ROOM_STATE', `\`initial_state\` cannot set ${type}: the server makes it.`)
    }
    return state(by, type, content, undefined, state_key)
  })
}
