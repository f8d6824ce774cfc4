import { Type } from '../../../core/shapes.ts'
import type { KeyBackupData } from '../../../domain/e2e/key-backups.ts'
import { AnyObject } from '../../../http/endpoint.ts'

/** Which backup a call is about. */
export const VersionQuery = Type.Object({ version: Type.String() })

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** Encrypted data of clients, kept as it is. */
export const ObjectOrText = Type.Union([AnyObject, Type.String()])

/** One key. */
export const KeyData = Type.Object({
  first_message_index: Count,
  forwarded_count: Count,
  is_verified: Type.Boolean(),
  session_data: ObjectOrText,
})

/** The keys of a room, by their session ids. */
export const RoomKeyBackup = Type.Object({
  sessions: Type.Unsafe<Readonly<Record<string, KeyBackupData>>>({ type: 'object', additionalProperties: KeyData }),
})
