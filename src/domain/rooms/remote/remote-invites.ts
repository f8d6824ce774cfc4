import { ProtocolError } from '../../../core/errors.ts'
import { buildEvent, checkBuilt, type EventDraft } from '../../../core/event/build.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../../core/ids.ts'
import { serverOf } from '../../../core/ids.ts'
import { isObject, type JsonObject, readExactJson } from '../../../core/json.ts'
import { createKeyedQueue } from '../../../core/keyed-queue.ts'
import { encodeCanonical } from '../../../core/signing/canonical-json.ts'
import { signedEventText } from '../../../core/signing/event-hash.ts'
import { addSignature } from '../../../core/signing/json-signature.ts'
import { type SigningKey, verifySignature } from '../../../core/signing/key.ts'
import type { Peers } from '../../../outbound/peers.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Random } from '../../clock.ts'
import type { KeyRing } from '../receive/federation-queries.ts'
import type { Receiver } from '../receive/receive.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { PolicyGate } from '../write/policy-gate.ts'
import { inviteStateEvents } from './invite-state.ts'
import type { Resident } from './resident.ts'

/**
 * Invites a user of another server to a room of ours. That server gets the event first, and signs it (server-server API, "Inviting to a
 * room"). Returns the event.
 */
export type InviteRemotely = (
  by: Pick<Requester, 'userId'>,
  roomId: RoomId,
  target: UserId,
  content: JsonObject,
) => Promise<EventId>

export function createRemoteInvites(parts: {
  readonly serverName: ServerName
  readonly signingKey: SigningKey
  readonly random: Random
  readonly keys: KeyRing
  readonly registry: RoomRegistry
  readonly resident: Resident
  readonly receiver: Receiver
  readonly peers: Pick<Peers, 'invite'>
  readonly policies: Pick<PolicyGate, 'sign' | 'mayApply'>
}): InviteRemotely {
  const { serverName, signingKey, random, registry, resident, receiver, peers, policies } = parts
  const roomQueue = createKeyedQueue<string>()

  const invite: InviteRemotely = async (by, roomId, target, content) => {
    const made = await sameInvitation(await registry.get(roomId), by.userId, target, content)
    if (made !== undefined) return made
    const wanted = { type: 'm.room.member', sender: by.userId, stateKey: target, content } as const
    const { event: template } = await resident.template(roomId, wanted)
    const room = (await registry.get(roomId))!
    const { version } = room
    const opaque = version.eventIdFormat === 'opaque'
    const draft = {
      ...template,
      namesOrigin: true,
      ...(opaque && { event_id: `$${random.bytes(18).toString('base64url')}:${serverName}` }),
    }
    const built = buildEvent(version, draft as unknown as EventDraft, serverName, signingKey)
    const verdict = checkBuilt(version, built)
    if (!verdict.allowed) throw new ProtocolError(verdict.errcode ?? 'M_FORBIDDEN', verdict.reason)
    const { eventId } = built
    const approved = policies.mayApply(room) ? await policies.sign(room, built) : undefined
    const signatures = approved ?? built.pdu.signatures
    const pdu = { ...built.pdu, signatures }
    const server = serverOf(target)
    const returned = await peers.invite(server, {
      ...{ roomId, eventId, roomVersion: version.id, event: pdu as JsonObject },
      ...{ inviteState: await inviteStateEvents(room, by.userId), isOld: opaque },
    })
    const signed = await countersigned(parts.keys, server, pdu as JsonObject, signedEventText(version, pdu), returned)
    const [received] = await receiver.receive(serverName, roomId, [readExactJson(encodeCanonical(signed))], 'accepted')
    if (received?.kind === 'accepted' || received?.kind === 'known') return eventId
    throw new ProtocolError('M_FORBIDDEN', `The room does not accept the invitation: ${received?.reason ?? eventId}.`)
  }

  // The other server may be slow: a second invitation of the same user waits for the outcome of the first.
  return (by, roomId, target, content) =>
    roomQueue.run(`${roomId} ${target}`, () => invite(by, roomId, target, content))
}

/** An invitation by the same sender with the same content. */
async function sameInvitation(
  room: Room | undefined,
  sender: UserId,
  target: UserId,
  content: JsonObject,
): Promise<EventId | undefined> {
  const member = await room?.stateEvent('m.room.member', target, room.pending.state)
  if (member?.sender !== sender) return undefined
  return encodeCanonical(member.content) === encodeCanonical(content) ? member.id : undefined
}

/** Our event with the other server's signature. Nothing else of what it gave back is used. */
async function countersigned(
  keys: KeyRing,
  server: ServerName,
  event: JsonObject,
  text: string,
  returned: unknown,
): Promise<JsonObject> {
  const all = isObject(returned as JsonObject) ? (returned as JsonObject).signatures : undefined
  const own = isObject(all) && Object.hasOwn(all, server) ? all[server] : undefined
  const signatures = Object.entries(isObject(own) ? own : {})
  const known = await keys.keysOf(
    server,
    signatures.map(([keyId]) => keyId),
  )
  for (const [keyId, signature] of signatures) {
    const key = known.find((each) => each.keyId === keyId)
    if (key === undefined || typeof signature !== 'string' || !verifySignature(key.publicKey, text, signature)) continue
    return { ...event, signatures: addSignature(event, server, keyId, signature) }
  }
  throw new ProtocolError('M_UNKNOWN', `${server} took the invitation without signing it.`, { status: 502 })
}
