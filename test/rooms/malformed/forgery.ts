import { createHash, hash } from 'node:crypto'
import { type EventReference, referencedId } from '../../../src/core/event/format.ts'
import { type ReadPdu, readPdu } from '../../../src/core/event/read.ts'
import { type EventId, isEventId } from '../../../src/core/ids.ts'
import { isObject, JsonTooDeepError, NotJsonError, type ReadJson, readExactJson } from '../../../src/core/json.ts'
import type { RoomVersion } from '../../../src/core/room-version.ts'
import { referenceTo } from '../../../src/core/signing/event-hash.ts'
import { versionsIn } from '../../core/auth/vector-room.ts'
import {
  companionsOf,
  type MalformedCase,
  type MalformedFixture,
  malformedCases,
  materialise,
} from '../../support/malformed.ts'

/** Every so many cases are tried, each kind among them; MALFORMED_SHARE=1 tries all. */
const SHARE = Number(process.env.MALFORMED_SHARE ?? 4)
export const CASES = malformedCases().filter((_, index) => index % SHARE === 0)

/** A malformed event as it would come over the wire, with those that its server would hand out with it. */
export interface Forgery {
  readonly malformed: MalformedCase
  readonly text: string
  /** Undefined where the text is no JSON: it is dropped with the transaction or answer that it is in. */
  readonly json: ReadJson | undefined
  /** Undefined where it has not the shape of an event. */
  readonly read: ReadPdu | undefined
  /** How others refer to it; where nobody can tell its id, they refer to what does not exist. */
  readonly reference: EventReference
  readonly eventId: EventId
  readonly companions: readonly ReadJson[]
}

export function casesOf(version: RoomVersion): MalformedCase[] {
  return CASES.filter(({ versions }) => versionsIn(versions).includes(version))
}

/** Each case in one version, which is another from case to case. */
export function casesByTurns(version: RoomVersion): MalformedCase[] {
  return CASES.filter(({ versions }, index) => {
    const fitting = versionsIn(versions)
    return fitting[index % fitting.length] === version
  })
}

export function forge(malformed: MalformedCase, fixture: MalformedFixture): Forgery {
  const text = materialise(malformed, fixture)
  const json = parsed(text)
  const read = json && readIn(fixture.version, json)
  const reference = read ? referenceTo(fixture.version, read.pdu) : claimedReference(fixture.version, text, json)
  const companions = companionsOf(malformed, fixture).flatMap((each) => parsed(each) ?? [])
  return { malformed, text, json, read, reference, eventId: referencedId(reference), companions }
}

export function parsed(text: string): ReadJson | undefined {
  try {
    return readExactJson(text)
  } catch (error) {
    if (error instanceof NotJsonError || error instanceof JsonTooDeepError) return undefined
    throw error
  }
}

/** Undefined where it has not the shape of an event. */
export function readIn(version: RoomVersion, { value, offence }: ReadJson): ReadPdu | undefined {
  const read = readPdu(version, value, offence)
  return 'allowed' in read ? undefined : read
}

function claimedReference(version: RoomVersion, text: string, json: ReadJson | undefined): EventReference {
  const digest = createHash('sha256').update(text).digest()
  if (version.eventIdFormat !== 'opaque') {
    return `$${digest.toString(version.eventIdFormat === 'base64' ? 'base64' : 'base64url').slice(0, 43)}` as EventId
  }
  const own = json && isObject(json.value) ? json.value.event_id : undefined
  const id = isEventId(own) && own.length < 200 ? own : `$${digest.toString('hex')}:beta.test`
  return [id as EventId, { sha256: digest.toString('base64').slice(0, 43) }]
}

/** A reference to an event that does not exist. */
export function unknownReference(version: RoomVersion, text: string): EventReference {
  const inUrls = !version.referencesCarryHashes && version.eventIdFormat !== 'base64'
  const sha256 = hash('sha256', text, inUrls ? 'base64url' : 'base64').slice(0, 43)
  return version.referencesCarryHashes ? [`$${text}:beta.test` as EventId, { sha256 }] : (`$${sha256}` as EventId)
}
