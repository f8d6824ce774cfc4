import { setImmediate } from 'node:timers/promises'
import type { Pdu } from '../../core/event/format.ts'
import { ALLOWED, type Refusal, refuse, type Verdict } from '../../core/event/format.ts'
import { type ReadPdu, readPdu } from '../../core/event/read.ts'
import { decisiveSignatures, requiredSigners, signatureKeyIds } from '../../core/event/signers.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf } from '../../core/ids.ts'
import type { ReadJson } from '../../core/json.ts'
import { isObject } from '../../core/json.ts'
import type { RoomVersion } from '../../core/room-version.ts'
import { roomIdOfCreate } from '../../core/signing/event-hash.ts'
import { MAX_KEYS_PER_SERVER } from '../limits.ts'
import type { KeyRing } from './questions.ts'
import { createSignatureChecks } from './signature-checks.ts'

/** Where an event claims to belong. */
export interface Place {
  readonly id: RoomId
  readonly version: RoomVersion
}

/** The checks of a remote event that need no other event: shape and size, content hash, room, signatures. */
export interface Vetter {
  vet(place: Place, raw: ReadJson): Promise<ReadPdu | Refusal>
  /** Many, in the order given; others get their turn meanwhile. */
  vetEach(place: Place, raws: readonly ReadJson[]): Promise<(ReadPdu | Refusal)[]>
  /** More than these are to be vetted soon: fetches keys. */
  expect(raws: readonly ReadJson[]): void
  /** Those of many that pass, each once. */
  vetAll(place: Place, raws: readonly ReadJson[]): Promise<ReadPdu[]>
  close(): Promise<void>
}

const VETTED_AT_ONCE = 64

export function isRefusal(read: ReadPdu | Refusal): read is Refusal {
  return 'allowed' in read
}

export function createVetter({ keys }: { keys: KeyRing }): Vetter {
  const checks = createSignatureChecks()

  async function vet(place: Place, { value, offence }: ReadJson): Promise<ReadPdu | Refusal> {
    const read = readPdu(place.version, value, offence)
    if (isRefusal(read)) return read
    if (roomOf(place.version, read) !== place.id) return refuse('the event is of another room')
    const signed = await checkSignatures(place.version, read)
    return signed.allowed ? read : signed
  }

  async function checkSignatures(version: RoomVersion, { pdu, signedText }: ReadPdu): Promise<Verdict> {
    for (const server of requiredSigners(version, pdu)) {
      const keyIds = signatureKeyIds(pdu, server)
      if (keyIds.length === 0) return refuse(`the event lacks a signature of ${server}`)
      const known = await keys.keysOf(server, keyIds)
      const decisive = decisiveSignatures(version, pdu, server, known)
      const good = await Promise.all(decisive.map((each) => checks.isGood(each, signedText)))
      if (good.length === 0 || good.includes(false))
        return refuse(`the event has no signature of ${server} that one of its keys confirms`)
    }
    return ALLOWED
  }

  async function vetEach(place: Place, raws: readonly ReadJson[]): Promise<(ReadPdu | Refusal)[]> {
    const portions: Promise<(ReadPdu | Refusal)[]>[] = []
    if (raws.length > VETTED_AT_ONCE) fetchKeysAhead(keys, raws)
    for (let at = 0; at < raws.length; at += VETTED_AT_ONCE) {
      // A state of many thousands takes seconds: others get their turn.
      if (at > 0) await setImmediate()
      portions.push(Promise.all(raws.slice(at, at + VETTED_AT_ONCE).map((raw) => vet(place, raw))))
    }
    return (await Promise.all(portions)).flat()
  }

  return {
    vet,
    vetEach,
    close: checks.close,
    expect: (raws) => fetchKeysAhead(keys, raws),
    async vetAll(place, raws) {
      const passed = new Map<EventId, ReadPdu>()
      for (const read of await vetEach(place, raws)) if (!isRefusal(read)) passed.set(read.eventId, read)
      return [...passed.values()]
    },
  }
}

/** So that servers which do not answer are waited for once and together, not in each portion of a large state anew. */
function fetchKeysAhead(keys: KeyRing, raws: readonly ReadJson[]): void {
  const wanted = new Map<ServerName, Set<string>>()
  for (const { value } of raws) {
    if (!isObject(value) || !isUserId(value.sender) || !isObject(value.signatures)) continue
    const server = serverOf(value.sender)
    const keyIds = wanted.get(server) ?? new Set<string>()
    for (const keyId of signatureKeyIds(value as unknown as Pdu, server)) keyIds.add(keyId)
    wanted.set(server, keyIds)
  }
  for (const [server, keyIds] of wanted) {
    // What fails here fails again where it is needed.
    keys.keysOf(server, [...keyIds].slice(0, MAX_KEYS_PER_SERVER)).catch(() => {})
  }
}

/** The room that an event names, or makes. */
function roomOf(version: RoomVersion, { pdu, eventId }: ReadPdu): RoomId | undefined {
  const isMaking = version.roomIdIsCreateHash && pdu.type === 'm.room.create'
  return isMaking ? roomIdOfCreate(eventId) : pdu.room_id
}
