import type { JsonObject } from '../../../../core/json.ts'
import { JsonBytes } from '../../../../core/json-bytes.ts'
import type { SlidingLook } from '../look.ts'
import { wasOn } from '../position.ts'
import type { RoomExtension } from '../request.ts'
import { type ExtensionPart, type ExtensionScene, inScope, type ScopedRoom, shownUpTo } from './extension.ts'

/** How far people have read: news, and for a room that the client begins with, what belongs to its timeline (MSC4551). */
export function receiptsPart(
  scene: ExtensionScene,
  extension: RoomExtension,
): ExtensionPart | undefined | Promise<ExtensionPart | undefined> {
  const { look } = scene
  const { own, by, now, from, sliding } = look
  const isFresh = !wasOn(from, 'receipts') || from?.scope !== sliding.scope
  const rooms = inScope(scene.rooms, extension).filter(({ wanted }) => wanted.room.isJoined)
  const begun = rooms.filter((room) => shownUpTo(look, isFresh, room) === undefined)
  if (begun.length === 0) return write(scene, extension.name, rooms, NONE)
  const nids = begun.map(({ answer }) => answer.nid)
  const eventNids = begun.flatMap((room) => eventsOf(look, room))
  return own.firstReceipts(by, nids, eventNids, now.ledger).then((first) => write(scene, extension.name, rooms, first))
}

const NONE: ReadonlyMap<number, JsonObject> = new Map()

function write(
  { look: { sliding }, receipts }: ExtensionScene,
  name: string,
  rooms: readonly ScopedRoom[],
  first: ReadonlyMap<number, JsonObject>,
): ExtensionPart | undefined {
  if (first.size + receipts.size === 0) return undefined
  const json = new JsonBytes().text('{"rooms":{')
  let isNone = true
  for (const { answer } of rooms) {
    const content = first.get(answer.nid) ?? receipts.get(answer.nid)
    if (content === undefined) continue
    json.key(answer.roomId, isNone).value(sliding.shape.hasEphemeralEvents ? { type: 'm.receipt', content } : content)
    isNone = false
  }
  return isNone ? undefined : { name, json: json.text('}}'), hasNews: true }
}

/** The numbers of the events that the client shows of a room. */
function eventsOf({ sources }: SlidingLook, { wanted, answer }: ScopedRoom): number[] {
  if (answer.isBegun) return answer.timeline.map(({ nid }) => nid)
  const count = Math.max(1, wanted.wish.timelineLimit)
  return sources.registry.peek(answer.nid)?.timeline.newestNids(count) ?? []
}
