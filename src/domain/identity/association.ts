import type { UserId } from '../../core/ids.ts'
import type { Signatures } from '../../core/signing/json-signature.ts'
import type { BindingRow } from '../../store/identity/bindings.ts'
import type { IdentityKeys } from './keys.ts'

/** A signed statement that an address is a user's (identity service API, "Association"). Times in milliseconds. */
export type Association = {
  address: string
  medium: string
  mxid: UserId
  not_after: number
  not_before: number
  ts: number
}

export type SignedAssociation = Association & { signatures: Signatures }

/** A hundred years of 365 days, as in the specification's example: an association lasts until it is unbound. */
const VALID_MS = 100 * 365 * 86_400_000

/** A binding as an association, signed with the current key. */
export function signedAssociation(
  keys: Pick<IdentityKeys, 'sign'>,
  { address, medium, user_id: mxid, bound_at: ts }: BindingRow,
): SignedAssociation {
  return keys.sign({ address, medium, mxid, not_after: ts + VALID_MS, not_before: ts, ts })
}
