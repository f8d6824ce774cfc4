/** Limits on sign-ins at another service. */

/** How long a user may take to sign in at the other service, and then again to choose a user name. */
export const SSO_FLOW_MS = 15 * 60 * 1000
/** Sign-ins that were begun, of all people, and to which the other service has not answered. One more ends the oldest. */
export const MAX_SSO_FLOWS = 20_000
/** Characters of the user's id that such a service gives. */
export const MAX_SSO_SUBJECT_CHARS = 1_000
