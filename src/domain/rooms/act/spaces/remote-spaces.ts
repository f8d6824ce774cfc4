import type { ByteBudget } from '../../../../core/byte-budget.ts'
import { ProtocolError } from '../../../../core/errors.ts'
import { compareSpaceChildren, readSpaceChild, type SpaceChild } from '../../../../core/event/space-child.ts'
import { isRoomId, type RoomId, type ServerName } from '../../../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../../../core/json.ts'
import type { Peers } from '../../../../outbound/peers.ts'
import type { Clock } from '../../../clock.ts'
import { MAX_SPACE_ANSWER_CHARS, MAX_SPACE_CHILDREN, MAX_SPACE_SERVERS_TRIED } from '../../../limits/spaces.ts'

/** A room as a server in it describes it to ours. */
export interface RemoteSpace {
  readonly summary: JsonObject
  readonly children: readonly SpaceChild[]
  /** Summaries of its children, without their own children. */
  readonly summaries: ReadonlyMap<RoomId, JsonObject>
  /** Children that nobody on this server may see, as the other server says. */
  readonly inaccessible: ReadonlySet<RoomId>
  /** The length of its JSON in characters. */
  readonly chars: number
}

/**
 * Asks servers for a room until one describes it (server-server API, `GET hierarchy`); undefined when none does. Answers are cached for a
 * while, by server, so that no server's answer replaces another's.
 */
export type AskForSpace = (
  roomId: RoomId,
  via: readonly ServerName[],
  suggestedOnly: boolean,
) => Promise<RemoteSpace | undefined>

const KEPT_MS = 5 * 60_000
const REFUSALS_KEPT_MS = 10_000

/** Bytes of an empty answer, and bytes of a parsed answer per character. */
const ANSWER_BYTES = 600
const BYTES_PER_CHAR = 3

interface Answer {
  until: number
  bytes: number
  readonly space: Promise<RemoteSpace | undefined>
}

export function createRemoteSpaces(deps: {
  readonly peers: Pick<Peers, 'query'>
  readonly clock: Clock
  readonly serverName: ServerName
  readonly budget: ByteBudget
}): AskForSpace {
  const { peers, clock, serverName } = deps
  const answers = deps.budget.part<string, Answer>({ bytesOf: ({ bytes }) => bytes })

  async function ask(server: ServerName, roomId: RoomId, suggestedOnly: boolean): Promise<RemoteSpace | undefined> {
    const path = `hierarchy/${encodeURIComponent(roomId)}?suggested_only=${suggestedOnly}`
    try {
      return readSpace(roomId, await peers.query(server, path))
    } catch (error) {
      if (error instanceof ProtocolError) return undefined
      throw error
    }
  }

  function askOnce(server: ServerName, roomId: RoomId, suggestedOnly: boolean): Promise<RemoteSpace | undefined> {
    const key = `${server} ${roomId} ${suggestedOnly}`
    const known = answers.get(key)
    if (known && known.until > clock.now()) return known.space
    const space = ask(server, roomId, suggestedOnly)
    const answer = { until: Number.POSITIVE_INFINITY, bytes: ANSWER_BYTES, space }
    answers.set(key, answer)
    space.then(
      (found) => {
        answer.bytes += BYTES_PER_CHAR * (found?.chars ?? 0)
        answers.grown(key, answer)
        answer.until = clock.now() + (found ? KEPT_MS : REFUSALS_KEPT_MS)
      },
      () => answers.delete(key),
    )
    return space
  }

  return async (roomId, via, suggestedOnly) => {
    const servers = [...new Set(via)].filter((server) => server !== serverName)
    for (const server of servers.slice(0, MAX_SPACE_SERVERS_TRIED)) {
      const space = await askOnce(server, roomId, suggestedOnly)
      if (space) return space
    }
    return undefined
  }
}

function readSpace(roomId: RoomId, answer: JsonObject): RemoteSpace | undefined {
  const { room, children, inaccessible_children: inaccessible } = answer
  const summary = readSummary(room)
  if (!isObject(room) || summary?.room_id !== roomId) return undefined
  const given = listOf(children)
    .map(readSummary)
    .filter((child) => child !== undefined)
  const space = {
    summary,
    children: listOf(room.children_state)
      .flatMap((child) => readSpaceChild(child) ?? [])
      .sort(compareSpaceChildren),
    summaries: new Map(given.map((child) => [child.room_id as RoomId, child])),
    inaccessible: new Set(listOf(inaccessible).filter(isRoomId)),
  }
  const chars = JSON.stringify([summary, space.children, given]).length
  return chars > MAX_SPACE_ANSWER_CHARS
    ? { ...space, children: [], summaries: new Map(), chars: 0 }
    : { ...space, chars }
}

const listOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? value.slice(0, MAX_SPACE_CHILDREN) : []

const TEXTS = ['name', 'topic', 'canonical_alias', 'avatar_url', 'join_rule', 'room_type', 'encryption', 'room_version']
const MAX_TEXT_CHARS = 4_096

/** The well-formed parts of a summary. */
function readSummary(given: JsonValue | undefined): JsonObject | undefined {
  if (!isObject(given) || !isRoomId(given.room_id)) return undefined
  const { room_id, num_joined_members: joined, allowed_room_ids: allowed } = given
  const texts = TEXTS.flatMap((key) => {
    const text = given[key]
    return typeof text === 'string' && text.length <= MAX_TEXT_CHARS ? [[key, text]] : []
  })
  return {
    room_id,
    num_joined_members: Number.isSafeInteger(joined) ? (joined as number) : 0,
    world_readable: given.world_readable === true,
    guest_can_join: given.guest_can_join === true,
    ...(Array.isArray(allowed) && { allowed_room_ids: listOf(allowed).filter(isRoomId) }),
    ...(Object.fromEntries(texts) as JsonObject),
  }
}
