import type { JsonObject } from '../../../../core/json.ts'
import { JsonBytes } from '../../../../core/json-bytes.ts'
import type { SlidingLook } from '../look.ts'
import { scopeOf, wasOn } from '../position.ts'
import type { RoomExtension } from '../request.ts'
import { type ExtensionPart, type ExtensionScene, inScope, type ScopedRoom, shownUpTo } from './extension.ts'

/** How far people have read: news, and for a room that the client begins with, what belongs to its timeline (MSC4551). */
export async function receiptsPart(
  scene: ExtensionScene,
  extension: RoomExtension,
): Promise<ExtensionPart | undefined> {
  const { look } = scene
  const { own, by, now, from, sliding } = look
  const isFresh = !wasOn(from, 'receipts') || from?.scope !== scopeOf(sliding.extensions)
  const rooms = inScope(scene.rooms, extension).filter(({ wanted }) => wanted.room.isJoined)
  const begun = rooms.filter((room) => shownUpTo(look, isFresh, room) === undefined)
  const first =
    begun.length === 0
      ? new Map<number, JsonObject>()
      : await own.firstReceipts(
          by,
          begun.map(({ answer }) => answer.nid),
          begun.flatMap((room) => eventsOf(look, room)),
          now.ledger,
        )
  const json = new JsonBytes().text('{"rooms":{')
  let isNone = true
  for (const { answer } of rooms) {
    const content = first.get(answer.nid) ?? scene.receipts.get(answer.nid)
    if (content === undefined) continue
    json.key(answer.roomId, isNone).value(sliding.shape.hasEphemeralEvents ? { type: 'm.receipt', content } : content)
    isNone = false
  }
  return isNone ? undefined : { name: extension.name, json: json.text('}}'), hasNews: true }
}

/** The numbers of the events that the client shows of a room. */
function eventsOf({ sources }: SlidingLook, { wanted, answer }: ScopedRoom): number[] {
  if (answer.isBegun) return answer.timeline.map(({ nid }) => nid)
  const places = sources.registry.peek(answer.nid)?.timeline ?? []
  return places.slice(-Math.max(1, wanted.wish.timelineLimit)).map(({ nid }) => nid)
}
