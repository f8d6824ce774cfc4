import { ProtocolError } from '../../../../core/errors.ts'
import type { SpaceChild } from '../../../../core/event/space-child.ts'
import type { RoomId, ServerName } from '../../../../core/ids.ts'
import type { JsonObject } from '../../../../core/json.ts'
import type { Clock } from '../../../clock.ts'
import {
  MAX_ROOMS_TO_VISIT,
  MAX_ROOMS_WALKED,
  MAX_SPACE_DEPTH,
  MAX_SPACE_PAGE,
  MAX_SPACE_PAGE_CHARS,
  MAX_SPACE_WAIT_MS,
} from '../../../limits/spaces.ts'

export interface TreeQuery {
  readonly suggestedOnly: boolean | undefined
  readonly maxDepth: number | undefined
  readonly limit: number | undefined
  readonly from: string | undefined
}

/** What a user sees of a room, from outside or inside. */
export interface Sight {
  readonly summary: JsonObject
  readonly children: readonly SpaceChild[]
  /** Summaries of the children, which the room's server gave with its answer. */
  readonly summaries?: ReadonlyMap<RoomId, JsonObject>
  readonly inaccessible?: ReadonlySet<RoomId>
}

/** How a user sees rooms. */
export interface Eyes {
  /** Null for a room of this server that the user may not see; undefined for one that this server is not in. */
  here(roomId: RoomId, suggestedOnly: boolean): Promise<Sight | null | undefined>
  elsewhere(roomId: RoomId, via: readonly ServerName[], suggestedOnly: boolean): Promise<Sight | undefined>
  /** Whether the user may see the room of a summary that another server gave. */
  maySee(summary: JsonObject): Promise<boolean>
}

/** A room to visit. */
interface Item {
  readonly roomId: RoomId
  readonly via: readonly ServerName[]
  readonly depth: number
  /** Its summary in the answer for its parent space. */
  readonly claimed: JsonObject | undefined
}

/** The parameters that all pages of one walk share. */
interface Walk {
  /** Rooms on earlier pages. */
  readonly skip: number
  readonly maxDepth: number
  readonly suggestedOnly: boolean
}

/** How many rooms are requested ahead, besides the one that is waited for. */
const ASKED_AHEAD = 5
const TOKEN = /^h(\d{1,6})_(\d{1,3})_([01])$/

/**
 * A page of a tree of rooms, depth first, each room once however many spaces name it. Each page walks the tree again, so that nothing is
 * kept between pages; answers for rooms of other servers are cached elsewhere.
 */
export async function walkTree(root: RoomId, query: TreeQuery, clock: Clock, eyes: Eyes): Promise<JsonObject> {
  const { skip, maxDepth, suggestedOnly } = readQuery(query)
  const limit = Math.min(query.limit ?? MAX_SPACE_PAGE, MAX_SPACE_PAGE)
  const end = clock.now() + MAX_SPACE_WAIT_MS
  const next = (passed: number) => ({ next_batch: `h${passed}_${maxDepth}_${suggestedOnly ? 1 : 0}` })
  const rooms: JsonObject[] = []
  const seen = new Set<RoomId>()
  const stack: Item[] = [{ roomId: root, via: [], depth: 0, claimed: undefined }]
  let passed = 0
  let chars = 0
  while (stack.length > 0 && seen.size < MAX_ROOMS_WALKED) {
    if (rooms.length === limit || chars > MAX_SPACE_PAGE_CHARS || (seen.size > 0 && clock.now() > end)) {
      return { rooms, ...next(Math.max(passed, skip)) }
    }
    const item = stack.pop()!
    if (seen.has(item.roomId)) continue
    seen.add(item.roomId)
    const sight = await look(eyes, item, suggestedOnly, stack)
    if (!sight && item.depth === 0) throw new ProtocolError('M_FORBIDDEN', 'There is no such space for you to see.')
    if (!sight) continue
    const { summary, children } = sight
    if (passed++ >= skip) {
      const room = { ...summary, children_state: children.map(({ shown }) => shown) }
      chars += JSON.stringify(room).length
      rooms.push(room)
    }
    if (item.depth < maxDepth) stack.push(...below(item, sight).filter(({ roomId }) => !seen.has(roomId)))
    if (stack.length > MAX_ROOMS_TO_VISIT) stack.splice(0, stack.length - MAX_ROOMS_TO_VISIT)
  }
  return { rooms }
}

/** A token holds the parameters of the first page. @throws ProtocolError `M_INVALID_PARAM` */
function readQuery({ from, maxDepth, suggestedOnly }: TreeQuery): Walk {
  if (from === undefined) {
    return {
      skip: 0,
      maxDepth: Math.min(maxDepth ?? MAX_SPACE_DEPTH, MAX_SPACE_DEPTH),
      suggestedOnly: suggestedOnly ?? false,
    }
  }
  const [, skip, depth, suggested] = TOKEN.exec(from) ?? []
  if (skip === undefined) throw new ProtocolError('M_INVALID_PARAM', '`from` is not a token that this server gave out.')
  const walk = { skip: Number(skip), maxDepth: Number(depth), suggestedOnly: suggested === '1' }
  const isOther =
    (maxDepth !== undefined && Math.min(maxDepth, MAX_SPACE_DEPTH) !== walk.maxDepth) ||
    (suggestedOnly !== undefined && suggestedOnly !== walk.suggestedOnly)
  if (!isOther) return walk
  throw new ProtocolError('M_INVALID_PARAM', '`suggested_only` and `max_depth` stay the same from page to page.')
}

async function look(
  eyes: Eyes,
  { roomId, via, claimed }: Item,
  suggestedOnly: boolean,
  stack: readonly Item[],
): Promise<Sight | undefined> {
  const here = await eyes.here(roomId, suggestedOnly)
  if (here !== undefined) return here ?? undefined
  const isSeen = claimed !== undefined && (await eyes.maySee(claimed))
  const asClaimed = isSeen ? { summary: claimed, children: [] } : undefined
  // A room that is not a space has no children to ask for.
  if (claimed && claimed.room_type !== 'm.space') return asClaimed
  for (const ahead of stack.slice(-ASKED_AHEAD)) void askAhead(eyes, ahead, suggestedOnly)
  return (await eyes.elsewhere(roomId, via, suggestedOnly)) ?? asClaimed
}

/** The answer is cached until its turn comes. */
async function askAhead(eyes: Eyes, { roomId, via, claimed }: Item, suggestedOnly: boolean): Promise<void> {
  if (claimed) return
  try {
    if ((await eyes.here(roomId, suggestedOnly)) === undefined) await eyes.elsewhere(roomId, via, suggestedOnly)
  } catch {
    // The visit of this room raises the error again.
  }
}

/** The children of a space in reverse order, so that the first is visited next. */
function below({ depth }: Item, { children, summaries, inaccessible }: Sight): Item[] {
  return children
    .filter(({ roomId }) => inaccessible?.has(roomId) !== true)
    .map(({ roomId, via }) => ({ roomId, via, depth: depth + 1, claimed: summaries?.get(roomId) }))
    .reverse()
}
