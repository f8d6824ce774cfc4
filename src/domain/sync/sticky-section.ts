import { loadReferences } from '../rooms/room/client-event.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { StickyEvent } from '../rooms/write/sticky-events.ts'
import type { Look } from './look.ts'
import type { EventPosition } from './token.ts'

const NONE: readonly RoomEvent[] = []

/**
 * The sticky events of a room that an answer must deliver although they are not among its timeline (MSC4354). History visibility does not
 * hide them: whoever is in the room may see them.
 *
 * @param since what the client has; undefined if it begins with the room
 */
export function stickyEventsOf(
  look: Look,
  room: Room,
  since: EventPosition | undefined,
  timeline: readonly RoomEvent[],
): readonly RoomEvent[] | Promise<readonly RoomEvent[]> {
  const { sticky } = look.sources
  if (sticky.isEmpty) return NONE
  const missing = notAmong(sticky.between(room.nid, since, look.now.events), timeline)
  return missing.length === 0 ? NONE : loadSticky(look, missing)
}

export function notAmong(sticky: readonly StickyEvent[], timeline: readonly RoomEvent[]): readonly StickyEvent[] {
  if (sticky.length === 0) return sticky
  const shown = new Set(timeline.map(({ nid }) => nid))
  return sticky.filter(({ nid }) => !shown.has(nid))
}

/** Loads sticky events with what writing them needs, the oldest first, without those of ignored users. */
export async function loadSticky(
  { sources, ignored }: Pick<Look, 'sources' | 'ignored'>,
  wanted: readonly StickyEvent[],
): Promise<readonly RoomEvent[]> {
  const found = await sources.events.load(wanted.map(({ nid }) => nid))
  const events = wanted.flatMap(({ nid }) => found.get(nid) ?? [])
  const seen = ignored ? events.filter(({ isState, sender }) => isState || !ignored.has(sender)) : events
  await loadReferences(sources.events, seen)
  return seen
}
