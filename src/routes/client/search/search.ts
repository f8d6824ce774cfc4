import { ProtocolError } from '../../../core/errors.ts'
import { compileEventFilter } from '../../../core/filter.ts'
import { readRoomEventFilter } from '../../../core/filter-reader.ts'
import type { JsonObject } from '../../../core/json.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import { Type } from '../../../core/shapes.ts'
import {
  MAX_SEARCH_CONTEXT,
  MAX_SEARCH_RESULTS_PER_PAGE,
  MAX_SEARCH_TERM_CHARS,
  SEARCH_CONTEXT,
  SEARCH_RESULTS_PER_PAGE,
} from '../../../domain/limits/search.ts'
import { AnyObject, endpoint, rawReply } from '../../../http/endpoint.ts'

const KINDS = { 'content.body': 'message', 'content.name': 'name', 'content.topic': 'topic' } as const
const Key = Type.Unsafe<keyof typeof KINDS>({ type: 'string', enum: Object.keys(KINDS) })
const GroupKey = Type.Unsafe<'room_id' | 'sender'>({ type: 'string', enum: ['room_id', 'sender'] })
const Count = Type.Optional(Type.Integer({ minimum: 0 }))

const RoomEvents = Type.Object({
  search_term: Type.String(),
  keys: Type.Optional(Type.Array(Key)),
  filter: Type.Optional(AnyObject),
  order_by: Type.Optional(Type.Union([Type.Literal('recent'), Type.Literal('rank')])),
  event_context: Type.Optional(
    Type.Object({ before_limit: Count, after_limit: Count, include_profile: Type.Optional(Type.Boolean()) }),
  ),
  include_state: Type.Optional(Type.Boolean()),
  groupings: Type.Optional(Type.Object({ group_by: Type.Optional(Type.Array(Type.Object({ key: GroupKey }))) })),
})

export const search = endpoint(
  'POST C/search',
  {
    auth: 'user',
    suspended: true,
    limited: 'search',
    query: Type.Object({ next_batch: Type.Optional(Type.String()) }),
    body: Type.Object({ search_categories: Type.Object({ room_events: Type.Optional(RoomEvents) }) }),
  },
  async ({ requester, query, body }, { roomReader, config, sync }) => {
    const wish = body.search_categories.room_events
    if (wish === undefined) return { search_categories: {} }
    if (!config.search.enabled) {
      throw new ProtocolError('M_FORBIDDEN', 'Searching is switched off on this server.')
    }
    if (wish.search_term.length > MAX_SEARCH_TERM_CHARS) {
      throw new ProtocolError('M_INVALID_PARAM', `A search term may have ${MAX_SEARCH_TERM_CHARS} characters.`)
    }
    const filter = filterOf(wish.filter)
    const around = (limit: number | undefined) => Math.min(limit ?? SEARCH_CONTEXT, MAX_SEARCH_CONTEXT)
    const asked = {
      term: wish.search_term,
      kinds: (wish.keys ?? (Object.keys(KINDS) as (keyof typeof KINDS)[])).map((key) => KINDS[key]),
      filter,
      byRank: wish.order_by !== 'recent',
      limit: Math.min(Math.max(1, filter.limit ?? SEARCH_RESULTS_PER_PAGE), MAX_SEARCH_RESULTS_PER_PAGE),
      context: wish.event_context && {
        before: around(wish.event_context.before_limit),
        after: around(wish.event_context.after_limit),
        withProfiles: wish.event_context.include_profile ?? false,
      },
      withState: wish.include_state ?? false,
      groupBy: (wish.groupings?.group_by ?? []).map(({ key }) => key),
      from: query.next_batch,
    }
    const found = async () =>
      new JsonBytes()
        .text('{"search_categories":{"room_events":')
        .append(await roomReader.search(requester, asked))
        .text('}}')
    return rawReply(await sync.answer(requester, found))
  },
)

function filterOf(filter: JsonObject | undefined) {
  const reading = readRoomEventFilter(filter ?? {})
  if (!reading.allowed) throw new ProtocolError(reading.errcode ?? 'M_BAD_JSON', reading.reason)
  return compileEventFilter(reading.filter)
}
