import { keep, kept } from './kept.ts'

/** The page of this server on which people sign in; it leads back here. */
const SIGN_IN = `/_hearth/account/sign-in?${new URLSearchParams({ next: '/_hearth/admin/' })}`

/** Leaves to sign in again, and remembers the place. */
export function leaveToSignIn(): void {
  keep('place', location.hash)
  location.assign(SIGN_IN)
}

/** Goes to the place from which somebody left. */
export function comeBack(): void {
  const place = kept('place')
  keep('place', undefined)
  if (place?.startsWith('#/') && location.hash === '') history.replaceState(undefined, '', place)
}
