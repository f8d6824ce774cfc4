import type { Answer, Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'

export type Form = 'merged' | 'unstable'
export const FORMS: readonly Form[] = ['merged', 'unstable']

/** What a test wants of a room, in words of neither form. */
export interface Wish {
  readonly limit?: number
  /** Pairs of type and state key; `*` for all, `$ME` for the user. */
  readonly state?: readonly (readonly [type: string, stateKey: string])[]
  readonly lazy?: boolean
}

export interface ListWish extends Wish {
  /** Absent for all rooms. */
  readonly range?: readonly [number, number]
  /** `is_invited` is translated. */
  readonly filters?: Json
}

export interface Request {
  readonly lists?: Readonly<Record<string, ListWish>>
  readonly rooms?: Readonly<Record<string, Wish>>
  readonly extensions?: Json
  readonly timeout?: number
  readonly presence?: string
  readonly pos?: string | null | undefined
}

/** Whoever asks, however they reach the server. */
export type SyncClient = Pick<Person, 'userId' | 'ask'>

/** A client's connection in one of the forms. It keeps its position, unless a request names another. */
export class Connection {
  readonly person: SyncClient
  readonly form: Form
  readonly connId: string | undefined
  pos: string | undefined

  constructor(person: SyncClient, form: Form, connId?: string) {
    this.person = person
    this.form = form
    this.connId = connId
  }

  async ask(request: Request): Promise<Answer> {
    const pos = request.pos === undefined ? this.pos : (request.pos ?? undefined)
    const { path, body } = wire(this.form, this.person.userId, { ...request, pos, connId: this.connId })
    return this.person.ask('POST', path, body)
  }

  /** The answer to a request that is in order. The next one continues after it. */
  async next(request: Request = {}): Promise<Json> {
    const { status, body } = await this.ask(request)
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    this.pos = body.pos
    return body
  }
}

export function wire(
  form: Form,
  me: string,
  {
    lists = {},
    rooms = {},
    extensions,
    timeout,
    presence,
    pos,
    connId,
  }: Request & { readonly connId?: string | undefined },
): { path: string; body: Json } {
  const wishOf = form === 'merged' ? (wish: Wish) => mergedWish(wish, me) : unstableWish
  const listOf = ({ range, filters, ...wish }: ListWish) => ({
    ...wishOf(wish),
    ...(range && (form === 'merged' ? { range } : { ranges: [range] })),
    ...(filters && { filters: form === 'merged' ? filters : unstableFilters(filters) }),
  })
  const about = {
    ...(pos !== undefined && { pos }),
    ...(timeout !== undefined && { timeout }),
    ...(presence && { set_presence: presence }),
  }
  const body: Json = {
    ...(connId !== undefined && { conn_id: connId }),
    lists: Object.fromEntries(Object.entries(lists).map(([key, list]) => [key, listOf(list)])),
    room_subscriptions: Object.fromEntries(Object.entries(rooms).map(([id, wish]) => [id, wishOf(wish)])),
    ...(extensions && { extensions }),
  }
  if (form === 'merged') return { path: '/_matrix/client/v4/sync', body: { ...body, ...about } }
  const query = new URLSearchParams(Object.entries(about).map(([key, value]): [string, string] => [key, String(value)]))
  return { path: `/_matrix/client/unstable/org.matrix.simplified_msc3575/sync?${query}`, body }
}

function mergedWish({ limit = 10, state = [], lazy = false }: Wish, me: string): Json {
  const include = state.map(([type, key]) => ({
    ...(type !== '*' && { type }),
    ...(key !== '*' && { state_key: key === '$ME' ? me : key }),
  }))
  return { timeline_limit: limit, required_state: { include, ...(lazy && { lazy_members: true }) } }
}

function unstableWish({ limit = 10, state = [], lazy = false }: Wish): Json {
  return { timeline_limit: limit, required_state: [...state, ...(lazy ? [['m.room.member', '$LAZY']] : [])] }
}

function unstableFilters({ is_invited, ...filters }: Json): Json {
  return { ...filters, ...(is_invited !== undefined && { is_invite: is_invited }) }
}

/** The stripped state of a room of an answer. */
export const strippedOf = (room: Json): Json[] => room.stripped_state ?? room.invite_state

export const isExpanded = (room: Json): boolean => (room.expanded_timeline ?? room.unstable_expanded_timeline) === true

export const bodiesOf = (room: Json): string[] =>
  (room?.timeline ?? []).flatMap(({ content }: Json) => (typeof content.body === 'string' ? [content.body] : []))

/** `type|state_key` of the required state, in order. */
export const stateOf = (room: Json): string[] =>
  (room?.required_state ?? []).map(({ type, state_key }: Json) => `${type}|${state_key}`)
