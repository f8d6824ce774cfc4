import { randomBytes } from 'node:crypto'
import { buildEvent, checkBuilt, type EventDraft } from '../../src/core/event/build.ts'
import { checkFormat } from '../../src/core/event/format.ts'
import { readPdu } from '../../src/core/event/read.ts'
import { isSignedBy } from '../../src/core/event/signers.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import { readJson } from '../../src/core/json.ts'
import { parseExact } from '../../src/core/large-integers.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import { contentHash, eventIdOf } from '../../src/core/signing/event-hash.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'

const origin = 'example.org' as ServerName
const key = signingKeyFromSeed('ed25519:bench', randomBytes(32))
const version = roomVersion('12')!
const hash = () => randomBytes(32).toString('base64url')
const id = () => `$${hash()}` as EventId

const draft: EventDraft = {
  type: 'm.room.message',
  sender: '@alice:example.org' as UserId,
  room_id: `!${hash()}` as RoomId,
  content: { msgtype: 'm.text', body: 'Good morning, everyone: the kettle is on.' },
  origin_server_ts: 1_700_000_000_000,
  depth: 1234,
  prev_events: [id()],
  auth_events: [id(), id()],
}
const longDraft: EventDraft = { ...draft, content: { msgtype: 'm.text', body: 'Grüße — "so" \n'.repeat(40) } }

const small = buildEvent(version, draft, origin, key)
const long = buildEvent(version, longDraft, origin, key)
const escaped = JSON.stringify({ body: 'line\n"quoted"'.repeat(1000) })

/** The fastest of many short rounds, which other work on the machine disturbs least. */
function measure(name: string, operation: () => unknown): void {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 60; round++) {
    const started = process.hrtime.bigint()
    for (let run = 0; run < 500; run++) operation()
    best = Math.min(best, Number(process.hrtime.bigint() - started) / 500)
  }
  console.log(`${(best / 1000).toFixed(2).padStart(8)} us  ${name}`)
}

console.log(`small event ${small.json.length} bytes, long event ${Buffer.byteLength(long.json)} bytes`)
measure('buildEvent, small', () => buildEvent(version, draft, origin, key))
measure('buildEvent, long', () => buildEvent(version, longDraft, origin, key))
measure('sign alone', () => key.sign(small.json))
measure('checkBuilt, small', () => checkBuilt(version, small))
measure('checkFormat of a received event, small', () => checkFormat(version, small.pdu))
measure('readJson, small', () => readJson(small.json))
measure('readJson, long', () => readJson(long.json))
measure('JSON.parse, long', () => JSON.parse(long.json))
measure('parseExact of a stored event, small', () => parseExact(small.json))
measure('JSON.parse, small', () => JSON.parse(small.json))
measure('parseExact of a stored event, long', () => parseExact(long.json))
measure('readJson, 15 KB of escapes', () => readJson(escaped))
measure('JSON.parse, 15 KB of escapes', () => JSON.parse(escaped))
measure('encodeCanonical, small', () => encodeCanonical(small.pdu))
measure('encodeCanonical, long', () => encodeCanonical(long.pdu))
measure('JSON.stringify, small', () => JSON.stringify(small.pdu))
measure('JSON.stringify, long', () => JSON.stringify(long.pdu))
measure('contentHash, small', () => contentHash(small.pdu))
measure('eventIdOf, small', () => eventIdOf(version, small.pdu))
measure('readPdu, small', () => readPdu(version, small.pdu))
measure('readPdu, long', () => readPdu(version, long.pdu))
const keys = [{ keyId: key.keyId, publicKey: key.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER }]
measure('isSignedBy, small', () => isSignedBy(version, small.pdu, origin, keys))
