import { ProtocolError } from '../../../core/errors.ts'
import { relationOf } from '../../../core/event/relation.ts'
import type { RoomId } from '../../../core/ids.ts'
import { isObject, type JsonObject } from '../../../core/json.ts'
import type { Reader } from '../../../store/db/db.ts'
import { hasAnnotated, hasRelation } from '../../../store/events/relations.ts'
import { wasTransactionUsed } from '../../../store/events/transaction-ids.ts'
import type { Requester } from '../../accounts/requester.ts'
import { MAX_ANNOTATION_KEY_CHARS } from '../../limits/relations.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Transaction } from '../write/draft.ts'

/**
 * Runs `send` if an event that a user sends may relate as it says; an event without a relation costs nothing.
 *
 * @param transaction of the request, if it has one
 * @throws ProtocolError `M_INVALID_PARAM` for an event that is not known in the room or an annotation without a good key, `M_UNKNOWN` (400) for
 * a thread within a thread, `M_DUPLICATE_ANNOTATION` for an annotation that the user has sent before
 */
export type CheckRelation = <T>(
  by: Pick<Requester, 'userId'>,
  roomId: RoomId,
  event: { readonly type: string; readonly content: JsonObject },
  transaction: Transaction | undefined,
  send: () => Promise<T>,
) => Promise<T>

export function createRelationCheck({
  db,
  events,
  registry,
}: {
  readonly db: Reader
  readonly events: Pick<EventCache, 'getById'>
  readonly registry: Pick<RoomRegistry, 'get'>
}): CheckRelation {
  /** Annotations that are being sent: two at once are one too many. */
  const underWay = new Set<string>()

  return async (by, roomId, { type, content }, transaction, send) => {
    const relation = relationOf(content)
    if (relation === undefined) {
      if (isKeyless(content)) throw badKey()
      return send()
    }
    const { relType, eventId, key } = relation
    const room = await registry.get(roomId)
    // Sending refuses it in its own words.
    if (room === undefined) return send()
    const target = await events.getById(eventId)
    if (target === undefined ? !(await hasRelation(db, room.nid, eventId)) : target.roomNid !== room.nid) {
      throw new ProtocolError('M_INVALID_PARAM', 'There is no such event in this room to relate to.')
    }
    if (relType === 'm.thread' && target && relationOf(target.content) !== undefined) {
      throw new ProtocolError('M_UNKNOWN', 'A thread begins at an event that relates to no other.', { status: 400 })
    }
    if (relType !== 'm.annotation') return send()
    if (key === undefined || key.length > MAX_ANNOTATION_KEY_CHARS) throw badKey()
    const name = JSON.stringify([room.nid, eventId, by.userId, type, key])
    const annotation = { roomNid: room.nid, targetId: eventId, sender: by.userId, type, key }
    if (underWay.has(name)) throw duplicate()
    underWay.add(name)
    try {
      // A repeated request gets the event that it wrote the first time.
      const isRepeated = async () => transaction !== undefined && wasTransactionUsed(db, transaction)
      if ((await hasAnnotated(db, annotation)) && !(await isRepeated())) throw duplicate()
      return await send()
    } finally {
      underWay.delete(name)
    }
  }
}

/** Whether it is meant as an annotation, of a malformed kind. */
function isKeyless(content: JsonObject): boolean {
  const relation = content['m.relates_to']
  return isObject(relation) && relation.rel_type === 'm.annotation'
}

const badKey = () =>
  new ProtocolError('M_INVALID_PARAM', `An annotation needs a 'key' of at most ${MAX_ANNOTATION_KEY_CHARS} characters.`)

const duplicate = () => new ProtocolError('M_DUPLICATE_ANNOTATION', 'You have sent this annotation already.')
