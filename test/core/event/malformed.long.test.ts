import { describe, expect, test } from 'vitest'
import { authorise } from '../../../src/core/auth/rules.ts'
import { checkAuthEvents } from '../../../src/core/auth/select.ts'
import { type Pdu, referencedId } from '../../../src/core/event/format.ts'
import { type ReadPdu, readPdu } from '../../../src/core/event/read.ts'
import { isSignedBy, requiredSigners } from '../../../src/core/event/signers.ts'
import type { ServerName } from '../../../src/core/ids.ts'
import { JsonTooDeepError, NotJsonError, readExactJson } from '../../../src/core/json.ts'
import { ROOM_VERSIONS } from '../../../src/core/room-version.ts'
import { companionsOf, type Fate, isExpected, malformedCases, materialise } from '../../support/malformed.ts'
import { KEYS, lookupIn, MalformedRoom, stateKeyOf } from '../../support/malformed-room.ts'
import { versionsIn } from '../auth/vector-room.ts'

const DAY_MS = 86_400_000

type Outcome = { readonly fate: Fate | 'accepted'; readonly why: string }

const dropped = (why: string): Outcome => ({ fate: 'dropped', why })

/** The checks on receipt of a PDU, by core alone: what a server would have to fetch is not there. */
function receive(room: MalformedRoom, text: string): Outcome {
  const read = readText(room, text)
  if (read === undefined) return dropped('no JSON')
  if ('allowed' in read) return dropped(read.reason)
  const unsigned = requiredSigners(room.fixture.version, read.pdu).find((server) => !hasSigned(room, read, server))
  if (unsigned !== undefined) return dropped(`not signed by ${unsigned}`)
  return judge(room, read)
}

function readText({ fixture }: MalformedRoom, text: string) {
  try {
    const { value, offence } = readExactJson(text)
    return readPdu(fixture.version, value, offence)
  } catch (error) {
    if (error instanceof NotJsonError || error instanceof JsonTooDeepError) return undefined
    throw error
  }
}

function hasSigned({ fixture }: MalformedRoom, { pdu, signedText }: ReadPdu, server: ServerName): boolean {
  const key = Object.hasOwn(KEYS, server) ? KEYS[server as string as keyof typeof KEYS] : undefined
  const known = key ? [{ keyId: key.keyId, publicKey: key.publicKey, validUntilTs: fixture.ts + 7 * DAY_MS }] : []
  return isSignedBy(fixture.version, pdu, server, known, signedText)
}

function judge(room: MalformedRoom, { pdu, eventId, isRedacted }: ReadPdu): Outcome {
  const { version, roomId } = room.fixture
  if (pdu.room_id !== roomId) return dropped('of another room')
  if (room.events.has(eventId)) return dropped('known already')
  const known = new Map([...(room.other?.events ?? []), ...room.events])
  const cited = pdu.auth_events.map((reference) => known.get(referencedId(reference))?.pdu)
  const before = pdu.prev_events.map((reference) => room.states.get(referencedId(reference)))
  if (cited.includes(undefined) || before.includes(undefined)) return dropped('cites what does not exist')
  const auth = cited as Pdu[]
  const state = new Map(auth.map((each) => [stateKeyOf(each.type, each.state_key!), each]))
  if (version.roomIdIsCreateHash) state.set(stateKeyOf('m.room.create', ''), createOf(room))
  const verdicts = [
    checkAuthEvents(
      version,
      pdu,
      auth.map((each) => ({ pdu: each, isRejected: false })),
    ),
    authorise(version, pdu, (type, key) => state.get(stateKeyOf(type, key))),
    authorise(version, pdu, lookupIn(before[0] ?? new Map())),
  ]
  const refusal = verdicts.find((verdict) => !verdict.allowed)
  if (refusal && !refusal.allowed) return { fate: 'rejected', why: `${refusal.rule}: ${refusal.reason}` }
  const now = authorise(version, pdu, lookupIn(room.current))
  if (!now.allowed) return { fate: 'soft-failed', why: `${now.rule}: ${now.reason}` }
  return { fate: isRedacted ? 'redacted' : 'accepted', why: '' }
}

function createOf(room: MalformedRoom): Pdu {
  return room.current.get(stateKeyOf('m.room.create', ''))!.pdu
}

const CASES = malformedCases()

describe.each(ROOM_VERSIONS)('malformed events in version $id', (version) => {
  const room = new MalformedRoom(version)
  const cases = CASES.filter(({ versions }) => versionsIn(versions).includes(version))

  test.each(cases)('$kind: $name: $expected', (malformed) => {
    const outcome = receive(room, materialise(malformed, room.fixture))
    expect(outcome).toMatchObject({ fate: malformed.expected })
    expect(isExpected(malformed, outcome.fate)).toBe(true)
    for (const companion of companionsOf(malformed, room.fixture)) expect(receive(room, companion).fate).toBe('dropped')
  })

  test('every rejection names its rule', () => {
    const rejected = cases.filter(({ expected }) => expected === 'rejected')
    const reasons = rejected.map((malformed) => receive(room, materialise(malformed, room.fixture)).why)
    expect(reasons.filter((why) => !/^[0-9.]+: /.test(why))).toEqual([])
  })

  test.each(['message', 'profile'] as const)('a %s that is not malformed is accepted', (base) => {
    const fine = { kind: 'fine', name: 'fine', versions: version.id, expected: 'redacted', base } as const
    expect(receive(room, materialise(fine, room.fixture))).toMatchObject({ fate: 'accepted' })
  })
})

test('there are 300 of them, each with a name of its own', () => {
  expect(new Set(CASES.map(({ name }) => name)).size).toBe(CASES.length)
  expect(CASES.length).toBeGreaterThanOrEqual(300)
})
