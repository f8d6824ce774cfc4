import type { RedactedPlace, UnreadBatch } from '../../../store/events/unread-writes.ts'
import type { Unit } from './unit.ts'

/** What a batch of units writes for unread counts. Events that the same batch redacts count no more. */
export function toUnreadBatch(units: readonly Unit[]): UnreadBatch {
  const redacted = new Map<number, RedactedPlace>()
  const left = new Map<string, { userNid: number; roomNid: number }>()
  for (const { room, redactions, members } of units) {
    for (const { targetNid, place } of redactions) {
      if (place && !redacted.has(targetNid)) redacted.set(targetNid, place)
    }
    for (const { userNid, isLocal, before, after } of members) {
      if (isLocal && before === 'join' && after !== 'join')
        left.set(`${room.nid} ${userNid}`, { userNid, roomNid: room.nid })
    }
  }
  const threads: UnreadBatch['threads'][number][] = []
  const noticed: UnreadBatch['noticed'][number][] = []
  for (const { room, unread } of units) {
    for (const { eventNid, pos, senderNid, rootId, counts, noticed: readers } of unread) {
      const isRedacted = redacted.has(eventNid)
      const place = { roomNid: room.nid, pos, rootId, counts: counts && !isRedacted }
      if (rootId !== '') threads.push({ ...place, senderNid })
      if (isRedacted) {
        if (rootId !== '') redacted.delete(eventNid)
        continue
      }
      for (const reader of readers) {
        if (!left.has(`${room.nid} ${reader.userNid}`)) noticed.push({ ...place, ...reader })
      }
    }
  }
  return { threads, noticed, redacted: [...redacted.values()], left: [...left.values()] }
}
