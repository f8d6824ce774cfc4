import { ProtocolError } from '../../core/errors.ts'
import { type Static, Type } from '../../core/shapes.ts'

export const Text = Type.String({ minLength: 1, maxLength: 1_000 })

/** What `POST user/{userId}/openid/request_token` answered. */
export const OpenIdToken = Type.Object({ access_token: Text, matrix_server_name: Text })

/** A client may ask the service to keep its delayed leave from being sent. */
export const Delegation = {
  delay_id: Type.Optional(Type.String()),
  delay_timeout: Type.Optional(Type.Number()),
}

const DelegationObject = Type.Object(Delegation)

/**
 * Without this refusal clients would rely on it, and drop out of the call. They ask again without it.
 *
 * @throws ProtocolError `M_BAD_JSON`
 */
export function refuseDelegation({ delay_id = '', delay_timeout = 0 }: Static<typeof DelegationObject>): void {
  if (delay_id === '' && delay_timeout === 0) return
  throw new ProtocolError('M_BAD_JSON', 'This service restarts no delayed events. Restart it yourself.')
}
