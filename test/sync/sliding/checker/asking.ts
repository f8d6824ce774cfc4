import type { Json } from '../../../support/api.ts'

/** `merged` is the published text of the proposal, `unstable` what clients spoke before. */
export type Form = 'merged' | 'unstable'

/** State by type and key. `*` stands for all; members may be lazy. */
export interface Wish {
  readonly limit: number
  readonly state: readonly (readonly [type: string, key: string])[]
  readonly isLazy: boolean
}

export interface ListAsk extends Wish {
  readonly range: readonly [first: number, last: number]
  readonly filter: Filter
}

export interface Filter {
  readonly isInvite?: boolean
  readonly isDirect?: boolean
}

/** What one request wants, in either form. */
export interface Ask {
  readonly lists: Readonly<Record<string, ListAsk>>
  readonly subscriptions: Readonly<Record<string, Wish>>
}

export interface Call {
  readonly path: string
  readonly body: Json
}

const PATHS = {
  merged: '/_matrix/client/v4/sync',
  unstable: '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync',
}

export interface CallParts {
  readonly form: Form
  readonly connId: string
  readonly pos: string | undefined
  readonly ask: Ask
  readonly extensions: object
  readonly timeout?: number
  /** The user who asks. */
  readonly own: string
}

export function callOf({ form, connId, pos, ask, extensions, timeout = 0, own }: CallParts): Call {
  const writes = form === 'merged' ? MERGED : unstable(own)
  const lists = Object.entries(ask.lists).map(([name, list]) => [name, writes.list(list)])
  const subscriptions = Object.entries(ask.subscriptions).map(([room, wish]) => [room, writes.wish(wish)])
  const body = {
    ...{ conn_id: connId, lists: Object.fromEntries(lists), extensions },
    room_subscriptions: Object.fromEntries(subscriptions),
  }
  if (form === 'merged') return { path: PATHS.merged, body: { ...body, ...(pos !== undefined && { pos }), timeout } }
  const query = new URLSearchParams({ timeout: String(timeout), ...(pos !== undefined && { pos }) })
  return { path: `${PATHS.unstable}?${query}`, body }
}

const pattern = ([type, key]: readonly [string, string]) => ({
  ...(type !== '*' && { type }),
  ...(key !== '*' && { state_key: key }),
})

const MERGED = {
  wish: ({ limit, state, isLazy }: Wish) => ({
    timeline_limit: limit,
    required_state: { include: state.map(pattern), ...(isLazy && { lazy_members: true }) },
  }),
  list: ({ range, filter, ...wish }: ListAsk): object => ({
    ...MERGED.wish(wish),
    range,
    filters: {
      ...(filter.isInvite !== undefined && { is_invited: filter.isInvite }),
      ...(filter.isDirect !== undefined && { is_dm: filter.isDirect }),
    },
  }),
}

function unstable(own: string) {
  const wish = ({ limit, state, isLazy }: Wish) => ({
    timeline_limit: limit,
    required_state: [
      ...state.map(([type, key]) => [type, key === own ? '$ME' : key]),
      ...(isLazy ? [['m.room.member', '$LAZY']] : []),
    ],
  })
  const list = ({ range, filter, ...rest }: ListAsk): object => ({
    ...wish(rest),
    ranges: [range],
    filters: {
      ...(filter.isInvite !== undefined && { is_invite: filter.isInvite }),
      ...(filter.isDirect !== undefined && { is_dm: filter.isDirect }),
    },
  })
  return { wish, list }
}

/** What an answer says of a room, in either form. */
export interface RoomNews {
  readonly isInitial: boolean
  readonly isExpanded: boolean
  readonly isLimited: boolean
  readonly timeline: readonly Json[]
  readonly state: readonly Json[]
  readonly stripped: readonly Json[] | undefined
  /** As it came. */
  readonly raw: Json
}

export function newsOf(form: Form, raw: Json): RoomNews {
  const isMerged = form === 'merged'
  return {
    isInitial: raw.initial === true,
    isExpanded: (isMerged ? raw.expanded_timeline : raw.unstable_expanded_timeline) === true,
    isLimited: raw.limited === true,
    timeline: raw.timeline ?? [],
    state: raw.required_state ?? [],
    stripped: isMerged ? raw.stripped_state : raw.invite_state,
    raw,
  }
}
