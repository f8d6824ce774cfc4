import { ProtocolError } from '../../../core/errors.ts'
import type { UserId } from '../../../core/ids.ts'
import type { JsonOffence, JsonValue } from '../../../core/json.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { JoinDetails } from '../../../domain/rooms/act/rooms.ts'
import { AnyObject } from '../../../http/endpoint.ts'

const UserIdShape = Type.Unsafe<UserId>({ type: 'string', format: 'user-id' })

/** The body of operations on one's own membership. */
export const ReasonBody = Type.Object({ reason: Type.Optional(Type.String()) })

/** The body of a join. An identity server may have signed that the user owns the invited address. */
export const JoinBody = Type.Object({
  reason: Type.Optional(Type.String()),
  third_party_signed: Type.Optional(
    Type.Object({ sender: UserIdShape, mxid: UserIdShape, token: Type.String(), signatures: AnyObject }),
  ),
})

/** Keys of a member event that only servers may set, or that a user sets elsewhere. */
const NOT_COPIED = new Set([
  'membership',
  'displayname',
  'avatar_url',
  'join_authorised_via_users_server',
  'third_party_invite',
])

/** Reads the body of a join. Unknown keys go into the member event, as bridges expect. */
export function joinDetailsOf(
  { reason, third_party_signed, ...unknown }: Static<typeof JoinBody>,
  offence: JsonOffence | undefined,
): JoinDetails {
  const others = Object.fromEntries(Object.entries<JsonValue>(unknown).filter(([key]) => !NOT_COPIED.has(key)))
  if (offence !== undefined && Object.keys(others).length > 0) {
    // The version of a remote room is not known yet, so the strictest rules apply to all versions.
    throw new ProtocolError('M_BAD_JSON', 'What a join adds to the member event must be canonical JSON.')
  }
  return { ...(reason !== undefined && { reason }), ...(third_party_signed && { third_party_signed }), others }
}

/** The body of operations on the membership of another. */
export const TargetBody = Type.Object({
  user_id: UserIdShape,
  reason: Type.Optional(Type.String()),
})
