import type { Pdu } from '../event/format.ts'
import { redactContent } from '../event/redact.ts'
import type { JsonValue } from '../json.ts'
import type { RoomVersion } from '../room-version.ts'
import { canonicalKeys, encodeCanonical } from './canonical-json.ts'

/** The three canonical texts of an event that was received without its `unsigned`. */
export interface EventTexts {
  /** The whole event. */
  readonly json: string
  /** The text of the content hash. */
  readonly hashed: string
  /** The text of signatures and the reference hash. */
  readonly signed: string
}

/** Members that the content hash excludes, beside `unsigned`. */
const NOT_HASHED: ReadonlySet<string> = new Set(['hashes', 'signatures'])

/** The three texts share nearly all members, so each member is encoded once. `buildEvent` does the same for local events. */
export function eventTexts(version: RoomVersion, pdu: Pdu): EventTexts {
  let json = ''
  let hashed = ''
  let signed = ''
  for (const key of canonicalKeys(pdu)) {
    const text = memberText(key, pdu[key]!)
    json = joined(json, text)
    if (!NOT_HASHED.has(key)) hashed = joined(hashed, text)
    if (key === 'content') signed = joined(signed, redactedContentText(version, pdu, text))
    else if (key !== 'signatures' && version.redaction.topLevel.has(key)) signed = joined(signed, text)
  }
  return { json: `{${json}}`, hashed: `{${hashed}}`, signed: `{${signed}}` }
}

function joined(members: string, text: string): string {
  return members === '' ? text : `${members},${text}`
}

function memberText(key: string, value: JsonValue): string {
  return `${encodeCanonical(key)}:${encodeCanonical(value)}`
}

function redactedContentText(version: RoomVersion, { type, content }: Pdu, text: string): string {
  const redacted = redactContent(version, type, content)
  return redacted === content ? text : memberText('content', redacted)
}
