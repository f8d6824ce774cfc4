import { ProtocolError } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import { Type } from '../../../core/shapes.ts'
import { isXMatrix } from '../../../core/signing/x-matrix.ts'
import type { IdentityServices } from '../../../domain/identity/identity-services.ts'
import { Opaque } from '../validation/token-request.ts'

export const BindBody = Type.Object({ sid: Opaque, client_secret: Opaque, mxid: Type.String() })

export const UnbindBody = Type.Object({
  sid: Type.Optional(Opaque),
  client_secret: Type.Optional(Opaque),
  mxid: Type.String(),
  threepid: Type.Object({ medium: Type.String(), address: Type.String() }),
})

interface Unbinding {
  readonly body: {
    readonly sid?: string
    readonly client_secret?: string
    readonly mxid: string
    readonly threepid: { readonly medium: string; readonly address: string }
  }
  readonly authorization: string | undefined
  readonly uri: string
}

/** Proves the request by the homeserver's signature if there is one, else by a validation session. */
export async function unbind(
  { body, authorization, uri }: Unbinding,
  isAdmitted: boolean,
  { bindings, homeserverRequests }: IdentityServices,
): Promise<object> {
  const { sid, client_secret: clientSecret, mxid, threepid } = body
  if (authorization !== undefined && isXMatrix(authorization)) {
    const content = body as JsonObject
    const server = await homeserverRequests.signerOf({ method: 'POST', uri, authorization, content })
    await bindings.unbindFor(server, threepid, mxid)
    return {}
  }
  if (!isAdmitted || (sid === undefined && clientSecret === undefined)) {
    throw new ProtocolError('M_UNAUTHORIZED', 'This needs the signature of a homeserver, or a session and its secret.')
  }
  if (sid === undefined || clientSecret === undefined) {
    throw new ProtocolError('M_MISSING_PARAMS', "Keys 'sid' and 'client_secret' belong together.")
  }
  await bindings.unbind({ sid, clientSecret }, threepid, mxid)
  return {}
}
