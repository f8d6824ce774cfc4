import { ProtocolError } from '../../../core/errors.ts'
import { isRoomId, isUserId, type RoomId, type UserId } from '../../../core/ids.ts'
import { isObject } from '../../../core/json.ts'

/** From where a search goes on. */
export interface SearchToken {
  /** By rank: how many matches were read. */
  readonly offset?: number
  /** By time: the last match that was read. By rank: what comes after the newest match of the first page. */
  readonly before?: { readonly ts: number; readonly eventNid: number }
  /** Only within this group. */
  readonly room?: RoomId
  readonly sender?: UserId
}

export function encodeSearchToken({ offset, before, room, sender }: SearchToken): string {
  return Buffer.from(
    JSON.stringify([offset ?? null, before?.ts ?? null, before?.eventNid ?? null, room ?? null, sender ?? null]),
  ).toString('base64url')
}

const MAX_TOKEN_CHARS = 1_000

/** @throws ProtocolError `M_INVALID_PARAM` for a text that is no token of this server */
export function decodeSearchToken(text: string): SearchToken {
  const parts = text.length <= MAX_TOKEN_CHARS ? parsed(text) : undefined
  if (parts === undefined) throw new ProtocolError('M_INVALID_PARAM', "'next_batch' is no token of this server.")
  const [offset, ts, eventNid, room, sender] = parts
  return {
    ...(isCount(offset) && { offset }),
    ...(isCount(ts) && isCount(eventNid) && { before: { ts, eventNid } }),
    ...(isRoomId(room) && { room }),
    ...(isUserId(sender) && { sender }),
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

function parsed(text: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    return Array.isArray(value) && value.length === 5 && !value.some(isObject) ? value : undefined
  } catch {
    return undefined
  }
}
