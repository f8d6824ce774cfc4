import { authorise } from '../../../src/core/auth/rules.ts'
import { checkAuthEvents } from '../../../src/core/auth/select.ts'
import { type Pdu, referencedId } from '../../../src/core/event/format.ts'
import { isSignedBy, requiredSigners } from '../../../src/core/event/signers.ts'
import { KEYS, stateKeyOf, TS } from '../../support/malformed-room.ts'
import type { Forgery } from './forgery.ts'
import type { WatchedRoom } from './watched-room.ts'

const DAY_MS = 86_400_000

/**
 * Whether an event, wrong as it may be where it stands, is right by all that it says itself: its shape, its signatures and the events
 * that it cites. A server may take such a one for a part of another's auth chain, or of a state that it is told.
 */
export function isCitable({ base, version, id }: WatchedRoom, { read, eventId }: Forgery): boolean {
  if (!read) return false
  const { pdu, signedText } = read
  if (pdu.type === 'm.room.create' || pdu.room_id !== id || base.events.has(eventId)) return false
  const isSigned = requiredSigners(version, pdu).every((server) => {
    const key = Object.hasOwn(KEYS, server) ? KEYS[server as string as keyof typeof KEYS] : undefined
    const keys = key ? [{ keyId: key.keyId, publicKey: key.publicKey, validUntilTs: TS + 7 * DAY_MS }] : []
    return isSignedBy(version, pdu, server, keys, signedText)
  })
  if (!isSigned) return false
  const known = new Map([...(base.other?.events ?? []), ...base.events])
  const cited = pdu.auth_events.map((reference) => known.get(referencedId(reference))?.pdu)
  if (cited.includes(undefined)) return false
  const auth = cited as Pdu[]
  const state = new Map(auth.map((each) => [stateKeyOf(each.type, each.state_key!), each]))
  const create = stateKeyOf('m.room.create', '')
  if (version.roomIdIsCreateHash) state.set(create, base.current.get(create)!.pdu)
  return [
    checkAuthEvents(
      version,
      pdu,
      auth.map((each) => ({ pdu: each, isRejected: false })),
    ),
    authorise(version, pdu, (type, key) => state.get(stateKeyOf(type, key))),
  ].every(({ allowed }) => allowed)
}
