import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { authEventKeys } from '../../../src/core/auth/select.ts'
import { encodeBase64 } from '../../../src/core/base64.ts'
import type { Pdu } from '../../../src/core/event/format.ts'
import { readPdu } from '../../../src/core/event/read.ts'
import { redact, redactContent } from '../../../src/core/event/redact.ts'
import { isSignedBy, requiredSigners } from '../../../src/core/event/signers.ts'
import type { ServerName } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { ROOM_VERSIONS } from '../../../src/core/room-version.ts'
import { contentHash, eventIdOf, referenceHash, signEvent } from '../../../src/core/signing/event-hash.ts'
import { versionsIn } from '../auth/vector-room.ts'
import { KEY } from './drafts.ts'

function read<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../../vectors/rooms/${name}.json`, import.meta.url), 'utf8'))
}

interface Case {
  readonly clause: string
  readonly name?: string
  readonly versions: string
}

describe('hashes and event ids (server-server API, "Signing Events"; room versions, "Event IDs")', () => {
  type Reference = { versions: string; hash: string; eventId: string }
  type Hashed = { name: string; event: Pdu; contentHash: string; references: Reference[] }
  const cases = read<Hashed[]>('hashes').flatMap(({ references, ...hashed }) =>
    references.flatMap((reference) =>
      versionsIn(reference.versions).map((version) => ({ ...hashed, reference, version })),
    ),
  )

  test.each(cases)('$name in version $version.id', ({ event, reference, version, ...expected }) => {
    const { age_ts, ...kept } = event
    expect(contentHash(kept)).toBe(expected.contentHash)
    expect(encodeBase64(referenceHash(version, event))).toBe(reference.hash)
    expect(eventIdOf(version, event)).toBe(reference.eventId)
    expect(readPdu(version, event)).toMatchObject({ eventId: reference.eventId, isRedacted: false })
    expect(readPdu(version, { ...kept, hashes: { sha256: 'AAAA' } })).toMatchObject({ isRedacted: true })
  })

  test('every version has some of every kind', () => {
    for (const { id } of ROOM_VERSIONS) {
      const names = new Set(cases.filter(({ version }) => version.id === id).map(({ name }) => name))
      expect(names.size).toBeGreaterThanOrEqual(13)
    }
  })
})

describe('redaction (room versions, "Redactions")', () => {
  type TopLevel = Case & { members: string[]; left: string[] }
  type Content = Case & { type: string; content: JsonObject; left: JsonObject }
  const { topLevel, content } = read<{ topLevel: TopLevel[]; content: Content[] }>('redactions')

  test.each(topLevel)('top level in versions $versions', ({ versions, members, left }) => {
    const event = Object.fromEntries(members.map((member) => [member, member])) as unknown as Pdu
    for (const version of versionsIn(versions)) {
      expect(Object.keys(redact(version, { ...event, content: {} })).sort()).toEqual(left)
    }
  })

  test.each(content)('$type in versions $versions: $name', ({ versions, type, content, left }) => {
    for (const version of versionsIn(versions)) expect(redactContent(version, type, content)).toEqual(left)
  })
})

describe('signatures', () => {
  type Required = Case & { event: Pdu; signers: string[] }
  type Validity = Case & { originServerTs: number; validUntilTs: number; counts: boolean }
  const { required, keyValidity } = read<{ required: Required[]; keyValidity: Validity[] }>('signers')
  const OPAQUE_ID = '$made:example.org'

  test.each(required)('$name in versions $versions', ({ versions, event, signers }) => {
    for (const version of versionsIn(versions)) {
      const named = version.eventIdFormat === 'opaque' ? { event_id: OPAQUE_ID, ...event } : event
      const others = event.event_id === undefined && version.eventIdServerMustSign ? ['example.org'] : []
      expect(new Set(requiredSigners(version, named as Pdu))).toEqual(new Set([...signers, ...others]))
    }
  })

  test.each(keyValidity)('a key that is valid $name, in versions $versions', (validity) => {
    const server = 'example.org' as ServerName
    for (const version of versionsIn(validity.versions)) {
      const unsigned = { type: 'x', content: {}, origin_server_ts: validity.originServerTs } as unknown as Pdu
      const event = signEvent(version, unsigned, server, KEY)
      const key = { keyId: KEY.keyId, publicKey: KEY.publicKey, validUntilTs: validity.validUntilTs }
      expect(isSignedBy(version, event, server, [key])).toBe(validity.counts)
    }
  })
})

describe('auth events selection (server-server API)', () => {
  test.each(read<(Case & { event: Pdu; keys: [string, string][] })[]>('selection'))(
    '$name in versions $versions',
    ({ versions, event, keys }) => {
      for (const version of versionsIn(versions)) expect(authEventKeys(version, event)).toEqual(keys)
    },
  )
})
