import { ProtocolError } from '../../../core/errors.ts'
import { type BuiltEvent, buildEvent, checkBuilt } from '../../../core/event/build.ts'
import { joinAuthoriserOf } from '../../../core/event/content.ts'
import type { EventReference } from '../../../core/event/format.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../../core/json.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import { encodeCanonical } from '../../../core/signing/canonical-json.ts'
import { signedEventText } from '../../../core/signing/event-hash.ts'
import { addSignature } from '../../../core/signing/json-signature.ts'
import { type SigningKey, verifySignature } from '../../../core/signing/key.ts'
import type { Clock, Random } from '../../clock.ts'

/** A membership that a user of ours requests in a room of other servers. */
export interface RemoteMembership {
  readonly version: RoomVersion
  readonly roomId: RoomId
  readonly userId: UserId
  readonly membership: 'join' | 'leave' | 'knock'
  /** The rest of the content: profile, reason. */
  readonly content: JsonObject
}

export interface RemoteJoinParts {
  readonly serverName: ServerName
  readonly signingKey: SigningKey
  readonly clock: Clock
  readonly random: Random
}

/**
 * Builds the membership event for a template of another server (`GET make_join`, `make_leave`, `make_knock`). It takes from the template
 * only the place in the room (`prev_events`, `auth_events`, `depth`) and the authorising user, so that we sign nothing that we did not
 * write.
 *
 * @throws ProtocolError `M_UNKNOWN` with status 502 when the template is for something else or is malformed
 */
export function buildFromTemplate(parts: RemoteJoinParts, wanted: RemoteMembership, template: JsonValue): BuiltEvent {
  if (!isObject(template) || !isFor(wanted, template)) throw unusable('it is not for what was asked')
  const { version, roomId, userId, membership } = wanted
  const { prev_events: prev, auth_events: auth, depth, content } = template
  if (!Array.isArray(prev) || !Array.isArray(auth) || !(typeof depth === 'bigint' || typeof depth === 'number'))
    throw unusable('it has no place in a room')
  const authoriser = isObject(content) ? authoriserIn(wanted, content) : undefined
  const { random, serverName, signingKey, clock } = parts
  const built = buildEvent(
    version,
    {
      type: 'm.room.member',
      sender: userId,
      state_key: userId,
      room_id: roomId,
      namesOrigin: true,
      content: {
        ...wanted.content,
        membership,
        ...(authoriser === undefined ? {} : { join_authorised_via_users_server: authoriser }),
      },
      origin_server_ts: clock.now(),
      depth,
      prev_events: referencesIn(version, prev),
      auth_events: referencesIn(version, auth),
      ...(version.eventIdFormat === 'opaque'
        ? { event_id: `$${random.bytes(18).toString('base64url')}:${serverName}` as EventId }
        : {}),
    },
    serverName,
    signingKey,
  )
  const verdict = checkBuilt(version, built)
  if (!verdict.allowed) throw unusable(verdict.reason)
  return built
}

/**
 * Adds the authorising server's signature to our join. It is taken from the event that the server gave back (`PUT send_join`), and nothing
 * else of that event is used. If no signature is needed, our event stays as it was.
 *
 * @param keys of that server, public keys by key id
 * @throws ProtocolError `M_UNKNOWN` with status 502 when the signature is not there
 */
export function withAuthoriser(
  version: RoomVersion,
  built: BuiltEvent,
  returned: JsonValue | undefined,
  keys: ReadonlyMap<string, string>,
): string {
  const authoriser = version.restrictedJoins ? joinAuthoriserOf(built.pdu.content) : undefined
  const server = isUserId(authoriser) ? serverOf(authoriser) : undefined
  if (server === undefined || Object.hasOwn(built.pdu.signatures, server)) return built.json
  const signatures = isObject(returned) && isObject(returned.signatures) ? returned.signatures[server] : undefined
  const text = signedEventText(version, built.pdu)
  for (const [keyId, publicKey] of keys) {
    const signature = isObject(signatures) && Object.hasOwn(signatures, keyId) ? signatures[keyId] : undefined
    if (typeof signature !== 'string' || !verifySignature(publicKey, text, signature)) continue
    return encodeCanonical({ ...built.pdu, signatures: addSignature(built.pdu, server, keyId, signature) })
  }
  throw unusable('the join lacks the signature of the server that lets the user in')
}

function isFor({ roomId, userId, membership }: RemoteMembership, template: JsonObject): boolean {
  const { type, room_id, sender, state_key, content } = template
  return (
    type === 'm.room.member' &&
    room_id === roomId &&
    sender === userId &&
    state_key === userId &&
    isObject(content) &&
    content.membership === membership
  )
}

function authoriserIn({ version, membership }: RemoteMembership, content: JsonObject): UserId | undefined {
  const stated = version.restrictedJoins && membership === 'join' ? joinAuthoriserOf(content) : undefined
  if (stated === undefined || isUserId(stated)) return stated
  throw unusable('who lets the user in is no user')
}

/** They are checked with the rest of the event once it is built. A version whose references carry hashes needs them to build it. */
function referencesIn(version: RoomVersion, references: readonly JsonValue[]): EventReference[] {
  const isReference = (value: JsonValue): boolean =>
    version.referencesCarryHashes
      ? Array.isArray(value) &&
        typeof value[0] === 'string' &&
        isObject(value[1]) &&
        typeof value[1].sha256 === 'string'
      : typeof value === 'string'
  if (!references.every(isReference)) throw unusable('it names events in the form of another room version')
  return references as EventReference[]
}

function unusable(why: string): ProtocolError {
  return new ProtocolError('M_UNKNOWN', `The other server's answer cannot be used: ${why}.`, { status: 502 })
}
