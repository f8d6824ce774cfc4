import { ProtocolError } from '../../../core/errors.ts'
import { isMediaId } from '../../../core/mxc.ts'
import { Type } from '../../../core/shapes.ts'
import type { FoundMedia } from '../../../domain/media/downloads.ts'
import type { Services } from '../../../domain/services.ts'
import type { EndpointRequest } from '../../../http/request.ts'

export const WaitQuery = { timeout_ms: Type.Optional(Type.Integer({ minimum: 0 })) } as const

/** The file of one of our users that another server asks for. */
export function ownMediaOf(
  {
    params,
    query,
    signal,
  }: Pick<EndpointRequest, 'signal'> & {
    readonly params: { readonly mediaId: string }
    readonly query: { readonly timeout_ms?: number }
  },
  { media, config }: Services,
): Promise<FoundMedia> {
  const { mediaId } = params
  if (!isMediaId(mediaId)) throw new ProtocolError('M_NOT_FOUND', 'There is no such media.')
  const mxc = { server: config.server_name, mediaId }
  return media.downloads.find({ mxc, fetchFor: undefined, isAnonymous: false, timeoutMs: query.timeout_ms, signal })
}
