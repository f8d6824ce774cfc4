import type { JsonObject, JsonValue } from '../../../core/json.ts'
import { preferredLanguages } from '../../../core/languages.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { IdentityServices } from '../../../domain/identity/identity-services.ts'
import { inviteKeys } from '../../../domain/identity/invite-keys.ts'
import type { IdentityRequester } from '../../../domain/identity/requester.ts'
import { networkOf } from '../../../domain/network.ts'
import type { Services } from '../../../domain/services.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { LookQuery } from '../validation/token-request.ts'

const Anything = Type.Optional(Type.Unsafe<JsonValue>({}))

/** The optional keys are declared for forms only: of a JSON body all keys are kept. */
export const InviteBody = Type.Object({
  ...{ medium: Type.String(), address: Type.String(), room_id: Type.String(), sender: Type.String() },
  ...{ room_alias: Anything, room_avatar_url: Anything, room_join_rules: Anything, room_name: Anything },
  ...{ room_type: Anything, sender_display_name: Anything, sender_avatar_url: Anything },
})

export const InviteQuery = LookQuery

type Request = EndpointRequest<
  unknown,
  Static<typeof InviteQuery>,
  Static<typeof InviteBody>,
  IdentityRequester | undefined
>

export async function storeInvite(request: Request, { identity, config }: Services): Promise<object> {
  const { body, query, requester, acceptLanguage, ip, dialect } = request
  const invite = await identity.invitations.store({ ...body } as JsonObject, {
    requester,
    who: requester?.userId ?? networkOf(ip),
    look: { brand: query.brand, languages: preferredLanguages(query.lang ?? acceptLanguage) },
  })
  const longTerm = identity.keys.current.publicKey
  return {
    token: invite.token,
    display_name: invite.displayName,
    // The published interface has URLs beside the keys; the older one and the `_proto` dialect have only the keys.
    public_keys: dialect === 'proto' ? [longTerm, invite.publicKey] : inviteKeys(config, longTerm, invite.publicKey),
    // Not in the specification, but the only key that older homeservers read.
    public_key: longTerm,
  }
}

export const SignBody = Type.Object({ mxid: Type.String(), token: Type.String(), private_key: Type.String() })

export function signInvite(body: Static<typeof SignBody>, { invitations }: IdentityServices): Promise<object> {
  return invitations.sign({ mxid: body.mxid, token: body.token, privateKey: body.private_key })
}
