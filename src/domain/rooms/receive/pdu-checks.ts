import { type Pdu, type Refusal, refuse } from '../../../core/event/format.ts'
import { type ReadPdu, readPdu } from '../../../core/event/read.ts'
import { decisiveSignatures, requiredSigners, signatureKeyIds, type VerifyKey } from '../../../core/event/signers.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf } from '../../../core/ids.ts'
import type { ReadJson } from '../../../core/json.ts'
import { isObject } from '../../../core/json.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import { roomIdOfCreate } from '../../../core/signing/event-hash.ts'
import { createLoopTurns } from '../../../outbound/loop-turns.ts'
import { MAX_KEYS_PER_SERVER } from '../../limits.ts'
import type { ClaimedRoom } from '../room/claimed-room.ts'
import type { KeyRing } from './federation-queries.ts'
import { createSignatureChecks, type SignedText } from './signature-checks.ts'

/** The checks of a remote event that need no other event: shape and size, content hash, room, signatures. */
export interface PduChecks {
  check(place: ClaimedRoom, raw: ReadJson): Promise<ReadPdu | Refusal>
  /** Checks many, in the order given, and yields to other work in between. */
  checkEach(place: ClaimedRoom, raws: readonly ReadJson[]): Promise<(ReadPdu | Refusal)[]>
  /** Announces events that will be checked soon, so that their keys are fetched now. */
  expect(raws: readonly ReadJson[]): void
  /** The events that pass, without duplicates. */
  checkAll(place: ClaimedRoom, raws: readonly ReadJson[]): Promise<ReadPdu[]>
  close(): Promise<void>
}

const CHECKED_AT_ONCE = 64

export function isRefusal(read: ReadPdu | Refusal): read is Refusal {
  return 'allowed' in read
}

export function createPduChecks({ keys }: { keys: KeyRing }): PduChecks {
  const checks = createSignatureChecks()
  /** A state of many thousands takes seconds. Other work gets its turn after each portion, however many such states there are. */
  const nextTurn = createLoopTurns()

  function read(place: ClaimedRoom, { value, offence }: ReadJson): ReadPdu | Refusal {
    const event = readPdu(place.version, value, offence)
    if (isRefusal(event) || roomOf(place.version, event) === place.id) return event
    return refuse('the event is of another room')
  }

  /** Checks the signatures of events that were read: all together, so that checking thousands costs little more than the cryptography. */
  async function confirm(version: RoomVersion, events: readonly (ReadPdu | Refusal)[]): Promise<(ReadPdu | Refusal)[]> {
    const checked = [...events]
    const claims = events.flatMap((event, index) => {
      if (isRefusal(event)) return []
      const made = claimsOf(version, event, index)
      if (Array.isArray(made)) return made
      checked[index] = made
      return []
    })
    const known = await keysFor(claims)
    const signed: SignedText[] = []
    const ends = claims.map(({ event, server }, index) => {
      for (const each of decisiveSignatures(version, event.pdu, server, known[index]!))
        signed.push({ ...each, text: event.signedText })
      return signed.length
    })
    const good = await checks.areGood(signed)
    for (const [index, { place, server }] of claims.entries()) {
      const own = good.slice(ends[index - 1] ?? 0, ends[index])
      if (own.length > 0 && !own.includes(false)) continue
      checked[place] = refuse(`the event has no signature of ${server} that one of its keys confirms`)
    }
    return checked
  }

  /** The keys that each claim names. Claims that name the same keys share one request. */
  function keysFor(claims: readonly Claim[]): Promise<(readonly VerifyKey[])[]> {
    const asked = new Map<string, Promise<readonly VerifyKey[]>>()
    return Promise.all(
      claims.map(({ server, keyIds }) => {
        const name = `${server} ${keyIds}`
        const found = asked.get(name) ?? keys.keysOf(server, keyIds)
        asked.set(name, found)
        return found
      }),
    )
  }

  async function checkEach(place: ClaimedRoom, raws: readonly ReadJson[]): Promise<(ReadPdu | Refusal)[]> {
    const portions: Promise<(ReadPdu | Refusal)[]>[] = []
    const areMany = raws.length > CHECKED_AT_ONCE
    if (areMany) fetchKeysAhead(keys, raws)
    for (let at = 0; at < raws.length; at += CHECKED_AT_ONCE) {
      if (areMany) await nextTurn()
      const portion = raws.slice(at, at + CHECKED_AT_ONCE).map((raw) => read(place, raw))
      portions.push(confirm(place.version, portion))
    }
    return (await Promise.all(portions)).flat()
  }

  return {
    check: async (place, raw) => (await confirm(place.version, [read(place, raw)]))[0]!,
    checkEach,
    close: checks.close,
    expect: (raws) => fetchKeysAhead(keys, raws),
    async checkAll(place, raws) {
      const passed = new Map<EventId, ReadPdu>()
      for (const read of await checkEach(place, raws)) if (!isRefusal(read)) passed.set(read.eventId, read)
      return [...passed.values()]
    },
  }
}

/** The claim that a server signed the event at this place in the list. */
interface Claim {
  readonly place: number
  readonly event: ReadPdu
  readonly server: ServerName
  readonly keyIds: readonly string[]
}

function claimsOf(version: RoomVersion, event: ReadPdu, place: number): Claim[] | Refusal {
  const claims = requiredSigners(version, event.pdu).map((server) => {
    return { place, event, server, keyIds: signatureKeyIds(event.pdu, server) }
  })
  const unsigned = claims.find(({ keyIds }) => keyIds.length === 0)
  return unsigned ? refuse(`the event lacks a signature of ${unsigned.server}`) : claims
}

/** Asks all servers at once. Those that do not answer cost one wait, instead of one in each portion of a large state. */
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
    // A failure here happens again where the key is needed, and is handled there.
    keys.keysOf(server, [...keyIds].slice(0, MAX_KEYS_PER_SERVER)).catch(() => {})
  }
}

/** The room that an event names, or that it creates. */
function roomOf(version: RoomVersion, { pdu, eventId }: ReadPdu): RoomId | undefined {
  const isMaking = version.roomIdIsCreateHash && pdu.type === 'm.room.create'
  return isMaking ? roomIdOfCreate(eventId) : pdu.room_id
}
