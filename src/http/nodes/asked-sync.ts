import type { IncomingMessage } from 'node:http'
import { isAccessToken } from '../../domain/accounts/access-tokens.ts'
import { MAX_ASKED_QUERY_CHARS } from '../../domain/limits/cluster.ts'
import type { AskedSync, ClassicWish, SlidingWish } from '../../domain/standby/sync-desk.ts'
import { decodeStreamToken } from '../../domain/sync/token.ts'
import type { AddressReader } from '../client-address.ts'
import { BAD_QUERY, parseQuery, type RawQuery } from '../query.ts'
import { hasBody } from './anywhere.ts'

/** A sync that may be answered here. */
export interface AskedHere {
  readonly asked: AskedSync
  readonly timeoutMs: number
  /** Its operation, as its endpoint declares it. */
  readonly route: string
}

const CLASSIC = /^\/_(?:matrix|proto)\/client\/(?:v3|r0)\/sync\/?\?/
const MERGED = /^\/_(?:matrix|proto)\/client\/v4\/sync\/?(?:\?|$)/
const UNSTABLE = /^\/_(?:matrix|proto)\/client\/unstable\/org\.matrix\.simplified_msc3575\/sync\/?\?/
const SWITCH: ReadonlySet<string> = new Set(['', 'true', 'false'])
const PRESENCE: ReadonlySet<string> = new Set(['', 'online', 'offline', 'unavailable'])
const MAX_TIMEOUT_MS = 999_999_999

export function isSlidingSync({ method, url = '' }: IncomingMessage): boolean {
  return method === 'POST' && (UNSTABLE.test(url) || MERGED.test(url))
}

/** What a request asks for, if it is a sync that goes on from somewhere, and everything in it is as it should be. */
export function askedHere(
  request: IncomingMessage,
  body: Buffer | undefined,
  addressOf: AddressReader,
): AskedHere | undefined {
  const { method, url = '' } = request
  // Most are none, and need not be read here.
  if ((method === 'GET' && !CLASSIC.test(url)) || url.length > MAX_ASKED_QUERY_CHARS) return undefined
  const { headers, socket } = request
  const query = parseQuery(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '')
  const token = query === BAD_QUERY ? undefined : tokenOf(request, query)
  if (token === undefined || !isAccessToken(token)) return undefined
  const wanted = wantedOf(request, query, body)
  if (wanted === undefined || !PRESENCE.has(wanted.presence)) return undefined
  return {
    asked: {
      token,
      since: wanted.since,
      wish: wanted.wish,
      presence: (wanted.presence || 'online') as AskedSync['presence'],
      // Most are not asked about.
      get ip() {
        return addressOf(socket.remoteAddress, headers['x-forwarded-for']?.toString())
      },
      userAgent: headers['user-agent'],
    },
    timeoutMs: wanted.timeoutMs,
    route: wanted.route,
  }
}

interface Wanted extends Pick<AskedHere, 'timeoutMs' | 'route'> {
  readonly since: string
  readonly wish: ClassicWish | SlidingWish
  readonly presence: string
}

function wantedOf(request: IncomingMessage, query: RawQuery, body: Buffer | undefined): Wanted | undefined {
  const { method, url = '', headers } = request
  if (method === 'GET') return hasBody(headers) ? undefined : classic(query)
  if (body === undefined || headers['content-encoding'] !== undefined) return undefined
  try {
    const text = body.toString()
    const read: unknown = JSON.parse(text)
    if (typeof read !== 'object' || read === null) return undefined
    return UNSTABLE.test(url) ? unstable(query, text, read) : merged(read)
  } catch {
    return undefined
  }
}

function classic(query: RawQuery): Wanted | undefined {
  const since = one(query, 'since')
  const [timeout, fullState, presence] = [one(query, 'timeout'), one(query, 'full_state'), one(query, 'set_presence')]
  const [filter, after] = [one(query, 'filter'), one(query, 'use_state_after')]
  const afterUnstable = one(query, 'org.matrix.msc4222.use_state_after')
  const isUsual =
    since !== undefined &&
    decodeStreamToken(since) !== undefined &&
    timeout !== undefined &&
    /^\d{0,9}$/.test(timeout) &&
    (fullState === '' || fullState === 'false') &&
    presence !== undefined &&
    filter !== undefined &&
    SWITCH.has(after ?? 'twice') &&
    SWITCH.has(afterUnstable ?? 'twice')
  if (!isUsual) return undefined
  const ofUnstable = afterUnstable === 'true' ? ('org.matrix.msc4222.state_after' as const) : undefined
  const wish = { filter: filter || undefined, stateAfter: after === 'true' ? ('state_after' as const) : ofUnstable }
  return { since, wish, presence, timeoutMs: Number(timeout), route: 'C/sync' }
}

function unstable(query: RawQuery, body: string, read: object): Wanted | undefined {
  const [since, timeout, presence] = [one(query, 'pos'), one(query, 'timeout'), one(query, 'set_presence')]
  const isUsual = since && timeout !== undefined && /^\d{0,9}$/.test(timeout) && presence !== undefined
  if (!isUsual) return undefined
  const wish = { form: 'unstable' as const, body, connId: connIdOf(read) }
  return { since, wish, presence, timeoutMs: Number(timeout), route: 'CU/org.matrix.simplified_msc3575/sync' }
}

function merged(read: object): Wanted | undefined {
  const { pos, timeout = 0, set_presence: presence = '', ...rest } = read as Record<string, unknown>
  const isTime = typeof timeout === 'number' && Number.isInteger(timeout) && timeout >= 0 && timeout <= MAX_TIMEOUT_MS
  if (typeof pos !== 'string' || pos === '' || !isTime || typeof presence !== 'string') return undefined
  const wish = { form: 'merged' as const, body: JSON.stringify(rest), connId: connIdOf(read) }
  return { since: pos, wish, presence, timeoutMs: timeout, route: 'client/v4/sync' }
}

function connIdOf(read: object): string {
  const { conn_id: connId = '' } = read as { readonly conn_id?: unknown }
  return typeof connId === 'string' ? connId : ''
}

/** The value of a parameter; empty if it is absent, undefined if it is there more than once. */
function one(query: RawQuery, name: string): string | undefined {
  const value = query[name] ?? ''
  return typeof value === 'string' ? value : undefined
}

/** The token as the endpoints read it. */
function tokenOf({ headers }: IncomingMessage, query: RawQuery): string | undefined {
  const header = headers.authorization
  if (header !== undefined && /^bearer /i.test(header)) return header.slice(7).trim()
  return one(query, 'access_token')
}
