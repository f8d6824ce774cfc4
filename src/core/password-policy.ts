/** The requirements for a new password. */
export interface PasswordPolicy {
  readonly min_length: number
  readonly require_lowercase: boolean
  readonly require_uppercase: boolean
  readonly require_digit: boolean
  readonly require_symbol: boolean
}

/** What a password lacks, in words for the user; undefined if it is good enough. Characters are code points; letters may be of any script. */
export function weaknessOf(password: string, policy: PasswordPolicy): string | undefined {
  if ([...password].length < policy.min_length) return `A password must have at least ${policy.min_length} characters.`
  if (policy.require_lowercase && !/\p{Ll}/u.test(password)) return 'A password must have a lower-case letter.'
  if (policy.require_uppercase && !/\p{Lu}/u.test(password)) return 'A password must have a capital letter.'
  if (policy.require_digit && !/\p{Nd}/u.test(password)) return 'A password must have a digit.'
  if (policy.require_symbol && !/[^\p{L}\p{N}]/u.test(password)) return 'A password must have a symbol.'
  return undefined
}
