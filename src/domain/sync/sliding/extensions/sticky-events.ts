import { groupBy } from '../../../../core/group-by.ts'
import { JsonBytes } from '../../../../core/json-bytes.ts'
import type { StickyEvent } from '../../../rooms/write/sticky-events.ts'
import { writeEventList } from '../../room-section.ts'
import { loadSticky, notAmong } from '../../sticky-section.ts'
import { type EventPosition, isNewer, writerOf } from '../../token.ts'
import { roomLook } from '../look.ts'
import type { SlidingExtensions } from '../request.ts'
import type { ExtensionPart, ExtensionScene } from './extension.ts'

interface Found {
  readonly roomNid: number
  readonly event: StickyEvent
}

/**
 * Sticky events of the rooms that the user is in, but for those among their timelines (MSC4480). The extension has a position of its own:
 * the stream's, up to which the client was sent them.
 */
export async function stickyEventsPart(
  scene: ExtensionScene,
  { name, limit, since }: NonNullable<SlidingExtensions['stickyEvents']>,
): Promise<ExtensionPart | undefined> {
  const { look } = scene
  const { entered, later, isAnyShown } = await newIn(scene, since)
  const sent = later.slice(0, limit)
  const events = [...entered, ...sent]
  if (events.length === 0 && !isAnyShown && since !== undefined) return undefined
  const last = sent.length < later.length ? sent.at(-1) : undefined
  const next = last === undefined ? look.now.events : behind(since ?? [], last.event)
  const json = new JsonBytes().text(`{"next_batch":"${next.join('.')}","rooms":{`)
  const hasNews = await writeRooms(scene, json, events)
  return { name, json: json.text('}}'), hasNews, hasMore: last !== undefined }
}

/** `entered`: of rooms that the user came into later than `since`, whatever their age. `isAnyShown`: whether timelines show others. */
async function newIn({ look, rooms, joined }: ExtensionScene, since: EventPosition | undefined) {
  const { sources, by, now } = look
  const timelines = new Map(rooms.map(({ answer }) => [answer.nid, answer.timeline]))
  const entered: Found[] = []
  const later: Found[] = []
  let isAnyShown = false
  if (sources.sticky.isEmpty) return { entered, later, isAnyShown }
  for (const roomNid of joined.keys()) {
    const all = sources.sticky.between(roomNid, undefined, now.events)
    if (all.length === 0) continue
    const room = sources.registry.peekAlive(roomNid) ?? (await sources.registry.getByNid(roomNid))
    const came = room.localMembers.get(by.userNid)?.since
    const isNew = since === undefined || (came !== undefined && isNewer(came, since))
    const missing = notAmong(all, timelines.get(roomNid) ?? [])
    isAnyShown ||= missing.length < all.length
    for (const event of missing) {
      if (since === undefined || isNewer(event.streamPos, since)) later.push({ roomNid, event })
      else if (isNew) entered.push({ roomNid, event })
    }
  }
  later.sort((one, other) => one.event.streamPos - other.event.streamPos)
  return { entered, later, isAnyShown }
}

async function writeRooms({ look }: ExtensionScene, out: JsonBytes, found: readonly Found[]): Promise<boolean> {
  let isNone = true
  const view = roomLook(look, undefined, 0)
  for (const [roomNid, ofRoom] of groupBy(found, (each) => each.roomNid)) {
    const events = await loadSticky(
      look,
      ofRoom.map(({ event }) => event),
    )
    if (events.length === 0) continue
    const room = await look.sources.registry.getByNid(roomNid)
    writeEventList(out.key(room.id, isNone).text('{"events":'), view, events).text('}')
    isNone = false
  }
  return !isNone
}

/** The position right behind an event, where that of other writers stays. */
function behind(since: EventPosition, { streamPos }: StickyEvent): EventPosition {
  const next = [...since]
  const writer = writerOf(streamPos)
  while (next.length <= writer) next.push(0)
  next[writer] = streamPos
  return next
}
