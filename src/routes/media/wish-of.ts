import type { ServerName } from '../../core/ids.ts'
import type { Dialect } from '../../core/paths.ts'
import { Type } from '../../core/shapes.ts'
import type { Requester } from '../../domain/accounts/requester.ts'
import type { MediaWish } from '../../domain/media/downloads.ts'
import { networkOf } from '../../domain/network.ts'
import type { Wire } from '../../http/request.ts'
import { mxcOf } from './mxc-of.ts'

export const WaitQuery = { timeout_ms: Type.Optional(Type.Integer({ minimum: 0 })) } as const

/** Of the old endpoints. Nobody is ever redirected, whether they allow it or not. */
export const OldQuery = { ...WaitQuery, allow_remote: Type.Optional(Type.Boolean()) } as const

interface MediaRequest extends Pick<Wire, 'signal' | 'ip'> {
  readonly params: { readonly serverName: ServerName; readonly mediaId: string }
  readonly query: { readonly timeout_ms?: number }
}

/** What the holder of a token asks for. */
export function wishOf(request: MediaRequest & { readonly requester: Requester }): MediaWish {
  const { params, query, requester, signal } = request
  return { mxc: mxcOf(params), fetchFor: requester.userId, isAnonymous: false, timeoutMs: query.timeout_ms, signal }
}

/**
 * What somebody asks for by an old endpoint. A token counts there too. Servers that speak the `_proto` dialect have no other way to
 * each other's files than this one, by which they say that it is not to go any further.
 */
export function oldWishOf(
  request: MediaRequest & {
    readonly query: { readonly allow_remote?: boolean }
    readonly requester: Requester | undefined
    readonly dialect: Dialect
  },
  isOpen: boolean,
): MediaWish {
  const { params, query, requester, dialect, signal } = request
  const { allow_remote: isRemoteAllowed = true, timeout_ms: timeoutMs } = query
  const isPeer = dialect === 'proto' && !isRemoteAllowed
  const isAnonymous = requester === undefined && !isPeer
  const asker = requester?.userId ?? (isOpen ? networkOf(request.ip) : undefined)
  return { mxc: mxcOf(params), fetchFor: isRemoteAllowed ? asker : undefined, isAnonymous, timeoutMs, signal }
}
