import { ProtocolError } from '../../../core/errors.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { CrossSigningUpload } from '../../../domain/keys/cross-signing.ts'
import { KEY_RESET_FLOWS } from '../../../domain/oauth/key-approvals.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { ownProof } from '../../../http/uia.ts'

const Body = Type.Object({
  master_key: Type.Optional(AnyObject),
  self_signing_key: Type.Optional(AnyObject),
  user_signing_key: Type.Optional(AnyObject),
})

export const uploadCrossSigningKeys = endpoint(
  'POST C/keys/device_signing/upload',
  {
    auth: 'user',
    limited: 'other',
    suspended: true,
    body: Body,
    also: ['CU/keys/device_signing/upload'],
    async uia(request, services) {
      if (request.bodyOffence) throw new ProtocolError('M_BAD_JSON', 'The body holds what canonical JSON forbids.')
      const isChange = await services.crossSigning.replaces(request.requester, uploadOf(request.body))
      // The older interface requires `auth` for every such call, the newer one only for a change of keys.
      if (!isChange && request.dialect !== 'proto') return undefined
      return request.requester.isOauth ? KEY_RESET_FLOWS : ownProof(request, services)
    },
  },
  async ({ requester, body, uia }, { crossSigning }) => {
    const isProven = uia !== undefined || requester.appservice !== undefined
    await crossSigning.upload(requester, uploadOf(body), isProven)
    return {}
  },
)

function uploadOf(body: Static<typeof Body>): CrossSigningUpload {
  return { master: body.master_key, self_signing: body.self_signing_key, user_signing: body.user_signing_key }
}
