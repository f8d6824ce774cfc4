import type { ServerName } from '../../core/ids.ts'
import type { Dialect } from '../../core/paths.ts'
import { Type } from '../../core/shapes.ts'
import type { Requester } from '../../domain/accounts/requester.ts'
import type { MediaWish } from '../../domain/media/downloads.ts'
import { networkOf } from '../../domain/network.ts'
import type { Wire } from '../../http/request.ts'
import { mxcOf } from './mxc-of.ts'

export const WaitQuery = { timeout_ms: Type.Optional(Type.Integer({ minimum: 0 })) } as const

/** Administrators may add to a download that they want a hidden file all the same; what it is called in existing tools. */
export const HeldQuery = { ...WaitQuery, admin_unsafely_bypass_quarantine: Type.Optional(Type.Boolean()) } as const

/** The query of the old endpoints. This server never redirects, so it ignores `allow_redirect`. */
export const OldQuery = { ...WaitQuery, allow_remote: Type.Optional(Type.Boolean()) } as const

interface MediaRequest extends Pick<Wire, 'signal' | 'ip'> {
  readonly params: { readonly serverName: ServerName; readonly mediaId: string }
  readonly query: { readonly timeout_ms?: number; readonly admin_unsafely_bypass_quarantine?: boolean }
}

/** The requested file, for the holder of a token. */
export function wishOf(request: MediaRequest & { readonly requester: Requester }): MediaWish {
  const { params, query, requester, signal } = request
  const { admin_unsafely_bypass_quarantine: isBypass = false, timeout_ms: timeoutMs } = query
  const despiteQuarantine = isBypass ? requester.userId : undefined
  const mxc = mxcOf(params)
  return { mxc, fetchFor: requester.userId, isAnonymous: false, despiteQuarantine, timeoutMs, signal }
}

/**
 * The requested file, for an old endpoint, which also accepts a token. Servers of the `_proto` dialect fetch each other's files only by these
 * endpoints; they set `allow_remote=false`, so that the request goes no further.
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
  const requestedBy = requester?.userId ?? (isOpen ? networkOf(request.ip) : undefined)
  return { mxc: mxcOf(params), fetchFor: isRemoteAllowed ? requestedBy : undefined, isAnonymous, timeoutMs, signal }
}
