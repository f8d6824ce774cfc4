import { Readable } from 'node:stream'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { BackedUpKeys } from '../../../domain/e2e/key-backups.ts'

/** `{"rooms": {room id: {"sessions": {...}}}}` of keys in the order of rooms, sent as they are read. */
export function roomsJson(pages: BackedUpKeys): Readable {
  return Readable.from(writeRooms(pages), { objectMode: false })
}

/** `{"sessions": {...}}` of the keys of one room. */
export function sessionsJson(pages: BackedUpKeys): Readable {
  return Readable.from(writeSessions(pages), { objectMode: false })
}

async function* writeRooms(pages: BackedUpKeys): AsyncGenerator<Buffer> {
  let room: string | undefined
  yield Buffer.from('{"rooms":{')
  for await (const page of pages) {
    const out = new JsonBytes()
    for (const key of page) {
      const isFirst = key.room_id !== room
      if (isFirst)
        out
          .text(room === undefined ? '' : '}},')
          .key(key.room_id, true)
          .text('{"sessions":{')
      room = key.room_id
      writeKey(out, key, isFirst)
    }
    yield out.toBuffer()
  }
  yield Buffer.from(room === undefined ? '}}' : '}}}}')
}

async function* writeSessions(pages: BackedUpKeys): AsyncGenerator<Buffer> {
  let isFirst = true
  yield Buffer.from('{"sessions":{')
  for await (const page of pages) {
    const out = new JsonBytes()
    for (const key of page) {
      writeKey(out, key, isFirst)
      isFirst = false
    }
    yield out.toBuffer()
  }
  yield Buffer.from('}}')
}

type Key = BackedUpKeys extends AsyncIterable<readonly (infer One)[]> ? One : never

function writeKey(out: JsonBytes, key: Key, isFirst: boolean): void {
  const { first_message_index, forwarded_count, is_verified, session_data } = key
  out.key(key.session_id, isFirst)
  out.text(`{"first_message_index":${first_message_index},"forwarded_count":${forwarded_count},`)
  out.text(`"is_verified":${is_verified},"session_data":`).text(session_data).text('}')
}
